"""The bound on prompt tokens is an assumption about the tokenizer: here it meets a real one of the model's family."""

import json
import shutil
import statistics
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firebreak.gemini.estimate import tokens_bound
from scripts.local.layout import ROOT
from tests.record import recorded

TOKENIZER = ROOT / "tests" / "tokenizer"

TEXTS: dict[str, str] = {
    "English": "A firebreak is a strip of land that was cleared so that a fire cannot spread across it. " * 4,
    "German": "Eine Brandschneise ist ein Streifen Land, der gerodet wurde, damit kein Feuer übergreift. " * 4,
    "Greek": "Μια αντιπυρική ζώνη είναι μια λωρίδα γης που καθαρίστηκε ώστε να μην εξαπλωθεί η φωτιά. " * 4,
    "Russian": "Противопожарная полоса — это расчищенная полоса земли, через которую огонь не перейдёт. " * 4,
    "Arabic": "خط النار هو شريط من الأرض أُزيلت منه النباتات حتى لا تنتشر النار عبره. " * 4,
    "Hebrew": "קו אש הוא רצועת קרקע שפונתה כדי שהאש לא תוכל להתפשט. " * 4,
    "Hindi": "अग्नि-रेखा ज़मीन की वह पट्टी है जिसे साफ़ किया गया ताकि आग फैल न सके। " * 4,
    "Thai": "แนวกันไฟคือแถบที่ดินที่ถูกถางเพื่อไม่ให้ไฟลุกลาม " * 4,
    "Chinese": "防火带是为了防止火势蔓延而清理出来的一条土地。" * 6,
    "Japanese": "防火帯とは、火が燃え広がらないように切り開かれた帯状の土地である。" * 6,
    "Korean": "방화선은 불이 번지지 않도록 나무를 베어 낸 띠 모양의 땅이다. " * 6,
    "Amharic": "የእሳት መከላከያ መስመር እሳት እንዳይዛመት የተጠረገ መሬት ነው። " * 4,
    "emoji": "🔥🧯👩‍🚒👨‍👩‍👧‍👦🏳️‍🌈🇨🇭🤦🏽‍♀️✊🏿" * 8,
    "code": (ROOT / "functions" / "firebreak" / "bucket" / "arithmetic.py").read_text(),
    "JSON": json.dumps({"a": [1, 2.5, None, {"deep": ["x"] * 20}], "b": "\\u0000"} | {f"k{n}": n for n in range(40)}),
    "digits": "3.14159265358979323846264338327950288419716939937510" * 4,
    "white space": " \t\n\r\n" * 40,
    "combining marks": "Z̸̧̢̛a̷̧̛l̵̢̛g̶̨̛ơ̴̧ e\u0301\u0302\u0303\u0304\u0305" * 8,
    "grows under NFKC": "ﷺ㍿㋿ﬃ℻½Ⅷ㌢" * 8,
    "mathematical letters": "𝕗𝕚𝕣𝕖𝕓𝕣𝕖𝕒𝕜 𝔣𝔦𝔯𝔢𝔟𝔯𝔢𝔞𝔨" * 6,
    "private use": "\ue000\uf8ff\U000f0000\U0010fffd" * 20,
    "control characters": "".join(map(chr, range(1, 32))) * 6,
    "rare scripts": "𓀀𓁐𒀀𐎀ᚠᚢᚦ꧁༒༻ᠮᠣᠩᠭᠣᠯ" * 6,
    "base64": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk" * 6,
}


@pytest.fixture(scope="session")
def tokenizer() -> Path:
    """Where the tokenizer is installed, as its lock file says."""
    folder = ROOT / ".local" / "tokenizer"
    folder.mkdir(parents=True, exist_ok=True)
    lock = (TOKENIZER / "package-lock.json").read_text()
    if not (folder / "done").exists() or (folder / "done").read_text() != lock:
        for name in ("package.json", "package-lock.json", ".npmrc"):
            shutil.copy(TOKENIZER / name, folder / name)
        subprocess.run(["npm", "ci", "--ignore-scripts", "--silent"], cwd=folder, check=True)
        (folder / "done").write_text(lock)
    return folder


def count(texts: list[str], tokenizer: Path) -> list[int]:
    command = ["node", str(TOKENIZER / "count.mjs"), str(tokenizer)]
    done = subprocess.run(command, input=json.dumps(texts), check=True, capture_output=True, text=True)
    counts: list[int] = json.loads(done.stdout)
    return counts


def test_no_text_has_more_tokens_than_the_bound_and_the_docs_say_how_loose_it_is(tokenizer: Path) -> None:
    counts = dict(zip(TEXTS, count(list(TEXTS.values()), tokenizer), strict=True))
    bounds = {name: tokens_bound([text]) for name, text in TEXTS.items()}

    assert [name for name in TEXTS if counts[name] > bounds[name]] == []
    ratios = {name: bounds[name] / counts[name] for name in TEXTS}
    rows = ["| text | bound / tokens |", "|---|---|"]
    rows += [f"| {name} | {ratio:.1f} |" for name, ratio in sorted(ratios.items(), key=lambda item: item[1])]
    rows += [f"| *median* | {statistics.median(ratios.values()):.1f} |", ""]
    recorded("tokens.md", "\n".join(rows))


@settings(max_examples=3, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=40), min_size=300, max_size=400))
def test_no_random_text_has_more_tokens_than_the_bound(tokenizer: Path, texts: list[str]) -> None:
    for text, tokens in zip(texts, count(texts, tokenizer), strict=True):
        assert tokens <= tokens_bound([text]), text
