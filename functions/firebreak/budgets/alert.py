"""What people are told of a threshold: a small JSON body, whose `text` a chat shows."""

from firebreak import stamp
from firebreak.budgets.notice import MICROS
from firebreak.budgets.policies import Kind, Threshold
from firebreak.budgets.standing import Standing


def body(standing: Standing, threshold: Threshold) -> dict[str, object]:
    """The webhook's body; amounts are those of the latest notice."""
    action = standing.applied[threshold].action
    return {
        "text": _text(standing, threshold, action),
        "budget": standing.name,
        "budgetId": standing.budget,
        "period": standing.period.name,
        "kind": threshold.kind.value,
        "threshold": threshold.bp / 100,
        "action": action,
        "until": stamp.second(standing.period.end_us),
        "cost": _plain(standing.cost),
        "budgetAmount": _plain(standing.amount),
        "currency": standing.currency,
    }


def _text(standing: Standing, threshold: Threshold, action: str) -> str:
    passed = "is past" if threshold.kind is Kind.ACTUAL else "is forecast to pass"
    spent = ""
    if standing.cost is not None and standing.amount is not None:
        of = f"{standing.amount / MICROS:,.2f} {standing.currency or ''}".rstrip()
        spent = f" ({standing.cost / MICROS:,.2f} of {of} so far)"
    name = standing.name or standing.budget
    return _escaped(f"Budget {name} {passed} {threshold.percent}%{spent}: {_done(standing, action)}")


def _done(standing: Standing, action: str) -> str:
    deed, _, argument = action.rstrip(")").partition("(")
    until = f"until {stamp.second(standing.period.end_us)} or an operator's reset"
    if deed == "trip":
        return f"{argument} is switched off {until}."
    if deed == "tighten":
        return f"every daily limit is {argument}% of itself {until}."
    return "nothing was changed."


def _escaped(text: str) -> str:
    """Chats read these three as markup: a budget's name must not be able to call everybody."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _plain(micros: int | None) -> float | None:
    return None if micros is None else micros / MICROS
