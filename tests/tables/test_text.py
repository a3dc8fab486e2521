"""Words of texts: HTML is stripped in linear time, and words are whole in every script."""

from __future__ import annotations

import time
import unicodedata

import numpy as np
import pytest

from labelrace import Tagger
from labelrace.tables.text import MAX_CHARACTERS, count_words, strip_html


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("<p>Fish &amp; <b class='x'>chips</b></p>", ["Fish", "&", "chips"]),
        ("<!-- not\n<p>this</p> -->but<!---->this", ["but", "this"]),
        ("a<script type='x'>if (1 < 2) no()</script >b<STYLE>p {}</style>c", ["a", "b", "c"]),
        ("a<script><!-- no() --></script>b", ["a", "b"]),
        ("<scripts>kept</scripts> 1 < 2, a <b and b> c", ["kept", "1", "<", "2,", "a", "c"]),
        ("<!-- no end", ["<!--", "no", "end"]),
        ("<script>no end", ["no", "end"]),
        ("<br/>&#101;gg&#x67;", ["eggg"]),
        ("x&#" + "1" * 10_000 + ";y", ["x\ufffdy"]),
    ],
)
def test_what_is_visible(page, words):
    assert strip_html(page).split() == words


@pytest.mark.parametrize(
    "part", ["<!--", "<script>", "<style>", "<script><style>", "<a ", "<!-- -->", "&#1", "</script "]
)
def test_stripping_takes_linear_time(part):
    start = time.process_time()
    strip_html(part * (MAX_CHARACTERS // len(part)) + "</style>")
    assert time.process_time() - start < 1


def test_words_of_html():
    assert count_words(["<p>Two <i>eggs</i></p>"], is_html=True).words == ["two", "eggs"]


SENTENCES = {
    "Latin": "l'été où la forêt brûle",
    "Vietnamese": "tôi muốn đổi mật khẩu",
    "Greek": "ο λογαριασμός δεν λειτουργεί",
    "Cyrillic": "мой телефон сломался",
    "Armenian": "իմ հեռախոսը կոտրված",
    "Georgian": "ჩემი ტელეფონი გატეხილია",
    "Hebrew": "הַטֶּלֶפוֹן שלי שבור",
    "Arabic": "هاتفي مكسور جدًّا",
    "Persian": "من می\u200cخواهم کتاب\u200cها را",
    "Devanagari": "मेरी गाड़ी की किताब",
    "Bengali": "আমার টাকা হারিয়ে গেছে",
    "Gurmukhi": "ਮੇਰੀ ਕਿਤਾਬ ਗੁਆਚ ਗਈ",
    "Gujarati": "મારો ફોન તૂટી ગયો",
    "Odia": "ମୋର ଫୋନ ଭାଙ୍ଗି ଗଲା",
    "Tamil": "என் தொலைபேசி உடைந்தது",
    "Telugu": "నా ఫోన్ పగిలిపోయింది",
    "Kannada": "ನನ್ನ ಫೋನ್ ಮುರಿದಿದೆ",
    "Malayalam": "എന്റെ ഫോൺ പൊട്ടി",
    "Sinhala": "ශ්\u200dරී ලංකාවේ පොත",
    "Tibetan": "བོད་སྐད་ཡིག",
    "Ethiopic": "ስልኬ ተሰብሯል",
    "Hangul": "제 전화기가 고장났어요",
    "Cherokee": "ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ",
    "Mongolian": "ᠮᠣᠩᠭᠣᠯ ᠪᠢᠴᠢᠭ",
}
# Without spaces between words.
LETTERS = {
    "Han": ("我的电话", ["我", "的", "电", "话"]),
    "kana": ("でんわ", ["で", "ん", "わ"]),
    "Thai": ("บัญชี", ["บัญ", "ญชี"]),
    "Lao": ("ບັນຊີ", ["ບັນ", "ນຊີ"]),
    "Burmese": ("မြန်မာ", ["မြန်", "န်မာ"]),
    "Khmer": ("ភាសាខ្មែរ", ["ភាសា", "សាខ្", "ខ្មែ", "មែរ"]),
}


@pytest.mark.parametrize("script", SENTENCES)
@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
def test_words_of_every_script_are_whole(script, form):
    sentence = SENTENCES[script]
    parts = unicodedata.normalize("NFKC", sentence.lower().replace("་", " ").replace("'", " ")).split()
    assert count_words([unicodedata.normalize(form, sentence)]).words == [word for word in parts if len(word) > 1]


@pytest.mark.parametrize("script", LETTERS)
def test_scripts_without_spaces(script):
    sentence, words = LETTERS[script]
    for form in ("NFC", "NFD"):
        found = count_words([unicodedata.normalize(form, sentence)]).words
        assert found == [unicodedata.normalize("NFKC", word) for word in words]


def test_forms_of_letters():
    assert count_words(["İstanbul ISTANBUL ﬁne ＡＢ ⅳ end\u200c e\u0301"]).words == [
        "istanbul",
        "fine",
        "ab",
        "iv",
        "end",
    ]


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_texts_categories_and_tags_in_either_form(form):
    words = ["खाता", "पैसा", "फोन", "किताब", "élève", "été", "forêt", "âme"]

    def rows(n, form, seed):
        made, rng = [], np.random.default_rng(seed)
        for one, two in rng.integers(0, len(words), (n, 2)).tolist():
            row = {"text": f"{words[one]} {words[two]}", "kind": words[one], "tags": [words[one], words[two]]}
            row["tags"] = [unicodedata.normalize(form, tag) for tag in row["tags"]]
            made.append(
                {name: cell if name == "tags" else unicodedata.normalize(form, cell) for name, cell in row.items()}
            )
        return made

    tagger = Tagger("tags", text="text", category="kind", random_state=0).partial_fit(rows(600, "NFC", 0))
    assert tagger.score(rows(200, form, 1)) > 0.97
    decomposed = unicodedata.normalize("NFD", "élève")
    tagger.rename_labels({decomposed: "pupil"}).rename_labels({"pupil": decomposed})
    assert "élève" in tagger.tags_
