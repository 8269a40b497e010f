"""The messages of the Cloud Billing Budget API v1, as its discovery document of 2026-10-11 lists them."""

from scripts.local.standins.jsonfront import (
    ANY,
    BOOL,
    DOUBLE,
    INT32,
    INT64,
    STRING,
    Enum,
    Map,
    Message,
    Repeated,
)

_PACKAGE = "google.cloud.billing.budgets.v1"
_STATES = ("STATE_UNSPECIFIED", "CONFIGURED", "ENFORCED", "AWAITING_NEXT_PERIOD")
_STATE = Enum(f"{_PACKAGE}.SpendCap.State", _STATES)
_DATE = Message({"year": INT32, "month": INT32, "day": INT32})
_MONEY = Message({"currencyCode": STRING, "units": INT64, "nanos": INT32})

_FILTER = Message(
    {
        "projects": Repeated(STRING),
        "resourceAncestors": Repeated(STRING),
        "creditTypes": Repeated(STRING),
        "creditTypesTreatment": Enum(
            f"{_PACKAGE}.Filter.CreditTypesTreatment",
            (
                "CREDIT_TYPES_TREATMENT_UNSPECIFIED",
                "INCLUDE_ALL_CREDITS",
                "EXCLUDE_ALL_CREDITS",
                "INCLUDE_SPECIFIED_CREDITS",
            ),
        ),
        "services": Repeated(STRING),
        "subaccounts": Repeated(STRING),
        "labels": Map(Repeated(ANY)),
        "calendarPeriod": Enum(
            f"{_PACKAGE}.CalendarPeriod", ("CALENDAR_PERIOD_UNSPECIFIED", "MONTH", "QUARTER", "YEAR")
        ),
        "customPeriod": Message({"startDate": _DATE, "endDate": _DATE}),
    },
    {"usage_period": frozenset({"calendarPeriod", "customPeriod"})},
)
_AMOUNT = Message(
    {"specifiedAmount": _MONEY, "lastPeriodAmount": Message({})},
    {"budget_amount": frozenset({"specifiedAmount", "lastPeriodAmount"})},
)
_THRESHOLD = Message(
    {
        "thresholdPercent": DOUBLE,
        "spendBasis": Enum(
            f"{_PACKAGE}.ThresholdRule.Basis", ("BASIS_UNSPECIFIED", "CURRENT_SPEND", "FORECASTED_SPEND")
        ),
    }
)
_NOTIFICATIONS = Message(
    {
        "pubsubTopic": STRING,
        "schemaVersion": STRING,
        "monitoringNotificationChannels": Repeated(STRING),
        "disableDefaultIamRecipients": BOOL,
        "enableProjectLevelRecipients": BOOL,
    }
)
BUDGET = Message(
    {
        "name": STRING,
        "displayName": STRING,
        "budgetFilter": _FILTER,
        "amount": _AMOUNT,
        "thresholdRules": Repeated(_THRESHOLD),
        "notificationsRule": _NOTIFICATIONS,
        "etag": STRING,
        "ownershipScope": Enum(
            f"{_PACKAGE}.OwnershipScope", ("OWNERSHIP_SCOPE_UNSPECIFIED", "ALL_USERS", "BILLING_ACCOUNT")
        ),
        "spendCap": Message({"inputState": _STATE, "outputState": _STATE, "reconciling": BOOL}),
    }
)
