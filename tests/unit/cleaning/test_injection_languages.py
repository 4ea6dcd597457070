"""A question in another language than the text around it, told by the words that ask and the commonest little ones."""

from __future__ import annotations

import pytest

from toolcage.cleaning.injection import languages

ENGLISH = [
    "The order was sent on Monday with the parcel service.",
    "It will be at your door on the day after that.",
    "You can follow it on the map in the app.",
]
QUESTIONS = {
    "German": "Wann fiel die Berliner Mauer?",
    "French": "Comment fait-on une ratatouille ?",
    "Spanish": "¿Quién pintó el techo?",
    "Italian": "Quando cadde l'impero romano?",
    "Portuguese": "Quantos planetas existem?",
    "Dutch": "Hoe maak ik pannenkoeken?",
    "Polish": "Gdzie leży Kraków?",
    "Turkish": "Baklava nasıl yapılır?",
    "Swedish": "Hur lagar man köttbullar?",
    "Norwegian": "Hvem skrev Peer Gynt?",
    "Finnish": "Kuka kirjoitti Kalevalan?",
    "Czech": "Kdo napsal Babičku?",
    "Hungarian": "Hogyan kell gulyást főzni?",
    "Romanian": "Cine a pictat Mona Lisa?",
    "Indonesian": "Bagaimana cara membuat nasi goreng?",
    "Greek": "Πώς φτιάχνω παστίτσιο;",
    "Ukrainian": "Як приготувати борщ?",
    "Chinese": "谁画了蒙娜丽莎？",
}


def placed(sentences: list[str]) -> list[tuple[int, str]]:
    return list(enumerate(sentences))


@pytest.mark.parametrize("language", QUESTIONS)
def test_a_question_in_another_language_is_found(language: str) -> None:
    found = languages.foreign_question(placed([*ENGLISH, QUESTIONS[language]]))
    assert found == (len(ENGLISH), QUESTIONS[language])


@pytest.mark.parametrize("language", QUESTIONS)
def test_among_questions_of_its_own_language_it_is_none(language: str) -> None:
    assert languages.foreign_question(placed([QUESTIONS[language]] * 4 + ENGLISH)) is None


@pytest.mark.parametrize(
    "question",
    [
        "Where is the parcel now, and who has it?",
        'What does "Wer ist da?" mean in the book?',
        "How do I say quando in English?",
        "Did Kim or Ai call you, and when?",
        "Have you seen https://example.com/?q=quando&ref=wie in the log?",
    ],
)
def test_a_question_in_the_language_of_the_text_is_none(question: str) -> None:
    assert languages.foreign_question(placed([*ENGLISH, question])) is None


@pytest.mark.parametrize(
    "line", [r"re.compile(r'(?i)^quando\b que', x)", "Quando e quanto depende.", "où est /tmp?a=1"]
)
def test_what_does_not_end_as_a_question_asks_nothing(line: str) -> None:
    assert languages.foreign_question(placed([*ENGLISH, line])) is None
