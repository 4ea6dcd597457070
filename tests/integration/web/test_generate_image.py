"""`generate_image` through the whole line, in a real cage, against a server that speaks OpenAI's images interface."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest

from servers.canary import let_out, spellings
from servers.https import Response
from servers.images import KEY, ImagesServer, png
from toolcage.tools import ImageGenerationTool

pytestmark = pytest.mark.docker

POLICY = """
version: 1
role: painter
tools:
  generate_image:
    resources: {endpoint: [images]}
    allow: [{}]
"""
JPEG = b"\xff\xd8\xff\xe0" + bytes(20)
WEBP = b"RIFF\x24\x00\x00\x00WEBPVP8 " + bytes(20)


@pytest.fixture
def paint(open_session: Callable[..., Any], images: ImagesServer) -> Callable[..., Any]:
    session = open_session(POLICY, images.resource())
    return lambda **arguments: session.call("generate_image", {"prompt": "a cat", **arguments})


def answered(content: bytes) -> Response:
    return Response.of({"data": [{"b64_json": base64.b64encode(content).decode()}]})


def test_pictures_come_out_as_files(paint: Any, images: ImagesServer) -> None:
    result = paint(n=3, size="512x512")
    assert result.status == "ok", result
    assert [image["file"] for image in result.data["images"]] == ["image-1.png", "image-2.png", "image-3.png"]
    assert [(file.media_type, file.content) for file in result.artifacts] == [
        ("image/png", png(number)) for number in range(3)
    ]
    assert images.requests[0].json() == {
        "prompt": "a cat", "n": 3, "size": "512x512", "response_format": "b64_json",
    }  # fmt: skip


def test_a_newer_model_is_asked_in_its_own_words(paint: Any, images: ImagesServer) -> None:
    assert paint(model="gpt-image-1", format="webp").success
    assert images.requests[0].json() == {
        "prompt": "a cat", "n": 1, "size": "1024x1024", "model": "gpt-image-1", "output_format": "webp",
    }  # fmt: skip


def test_what_is_out_of_range_is_invalid(paint: Any, images: ImagesServer) -> None:
    for arguments in ({"n": 5}, {"n": 0}, {"size": "9x9"}, {"format": "exe"}, {"prompt": ""}, {"model": "a b"}):
        assert paint(**arguments).status == "invalid", arguments
    assert images.requests == []


def test_a_url_within_the_endpoint_is_fetched_through_it(paint: Any, images: ImagesServer) -> None:
    images.answer = lambda request: (
        Response(200, png(9), {"Content-Type": "text/html"}) if request.method == "GET"
        else Response.of({"data": [{"url": f"{images.origin}/v1/files/cat.png?sig=a%2Fb"}]})
    )  # fmt: skip
    result = paint()
    assert result.artifacts[0].content == png(9)
    assert images.requests[1].path == "/v1/files/cat.png"
    assert images.requests[1].query == {"sig": ["a/b"]}
    assert images.requests[1].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    "url",
    ["https://cdn.evil.example/cat.png", "http://169.254.169.254/latest/meta-data", "file:///etc/passwd",
     "https://cdn.example/v1/admin/cat.png", "/v1/images/../admin", "/v1/images/%2e%2e/admin", "ftp://x.example/v1/files/a",
     "data:image/png;base64,AAAA", "//[::1]/x", "/v1/other"],
)  # fmt: skip
def test_a_url_outside_the_endpoint_is_refused(url: str, paint: Any, images: ImagesServer) -> None:
    images.answer = lambda _: Response.of({"data": [{"url": url}]})
    result = paint()
    assert (result.status, result.code) == ("tool_error", "image.elsewhere"), result
    assert len(images.requests) == 1


def test_a_url_that_names_another_host_reaches_the_granted_one_alone(paint: Any, images: ImagesServer) -> None:
    images.answer = lambda request: (
        Response(200, png()) if request.method == "GET"
        else Response.of({"data": [{"url": "https://evil.example/v1/files/cat.png"}]})
    )  # fmt: skip
    assert paint().success
    assert images.requests[1].headers["host"] == f"127.0.0.1:{images.port}"


def test_a_file_is_named_by_what_it_is(paint: Any, images: ImagesServer) -> None:
    for content, name in ((JPEG, "image-1.jpg"), (WEBP, "image-1.webp"), (b"GIF89a" + bytes(9), "image-1.gif")):
        images.answer = lambda _, sent=content: answered(sent)  # type: ignore[misc]
        assert paint().artifacts[0].name == name


@pytest.mark.parametrize(
    "content", [b"<svg onload=alert(1)>", b"#!/bin/sh\nid", b"MZ" + bytes(40), b"\x89PNG\r\n", b"", b"RIFF....WAVE"]
)
def test_what_is_no_picture_is_refused(content: bytes, paint: Any, images: ImagesServer) -> None:
    images.answer = lambda _: answered(content)
    result = paint()
    assert result.code in ("image.not_an_image", "endpoint.bad_answer"), result
    assert result.artifacts == ()


@pytest.mark.parametrize(
    "document",
    [{"data": []}, {"data": "x"}, {"data": [7]}, {"data": [{}]}, {"data": [{"b64_json": "!!!"}]}, [], {"data": None}],
)
def test_an_answer_of_another_form_is_said(document: Any, paint: Any, images: ImagesServer) -> None:
    images.answer = lambda _: Response.of(document)
    assert paint().code == "endpoint.bad_answer"


def test_more_pictures_than_asked_for_are_not_kept(paint: Any, images: ImagesServer) -> None:
    one = {"b64_json": base64.b64encode(png()).decode()}
    images.answer = lambda _: Response.of({"data": [one] * 9})
    assert len(paint(n=2).artifacts) == 2


def test_a_refusal_of_the_service_is_told(paint: Any, images: ImagesServer) -> None:
    images.answer = lambda _: Response.of({"error": {"message": "Your request was rejected by our filter."}}, 400)
    result = paint()
    assert result.code == "endpoint.bad_request"
    assert "rejected by our filter" in result.error


def test_the_key_never_comes_back(open_session: Callable[..., Any], installation: Any, images: ImagesServer) -> None:
    session = open_session(POLICY, images.resource())
    for content in (png(), png() + KEY.encode()):
        echoed = {"b64_json": base64.b64encode(content).decode(), "revised_prompt": f"cat {KEY}"}
        images.answer = lambda _, sent=echoed: Response.of({"data": [sent], "key": KEY})  # type: ignore[misc]
        result = session.call("generate_image", {"prompt": "a cat"})
        assert result.success is (content == png())
        seen = let_out(installation, result)
        assert not [spelling for spelling in spellings(KEY) if spelling in seen]


def test_the_tutorials_class_goes_through_the_line(open_session: Callable[..., Any], images: ImagesServer) -> None:
    with open_session(POLICY, images.resource()):
        assert ImageGenerationTool().execute(prompt="a cat").data["images"][0]["file"] == "image-1.png"
