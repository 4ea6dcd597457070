"""Look-alikes have one skeleton; alphabets of their own do not."""

from toolcage.facts.confusables import mixes_scripts, passes_for_latin, skeleton


def test_look_alikes_have_the_skeleton_of_what_they_look_like() -> None:
    for text in ("раssword", "ｐａｓｓｗｏｒｄ", "𝓹𝓪𝓼𝓼𝔀𝓸𝓻𝓭", "pássword", "PASSWORD", "ⓟⓐⓢⓢⓦⓞⓡⓓ"):
        assert skeleton(text) == "password"


def test_mixed_alphabets_are_told_from_foreign_ones() -> None:
    assert mixes_scripts("раypal")
    assert not mixes_scripts("пример")
    assert not mixes_scripts("größe")
    assert not mixes_scripts("日本語abc")
    assert passes_for_latin("соре")
    assert not passes_for_latin("пример")
    assert not passes_for_latin("cope")
