"""Launch settings: a host's own data, applied to a live provider, and shown by no session."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from bargein import sim
from bargein.models.cassettes import Exchange, dump_cassette
from bargein.sim.live.endpoints import PLACES, EndpointError
from bargein.sim.live.fetch import Fetcher, FetchError
from bargein.sim.live.launch import MAX_BYTES, Launch, LaunchError, load_launch
from bargein.sim.live.recording import Recorded, record
from bargein.sim.scenario.places import ScenarioError
from tests.sessions.record.loopback import KEY, Provider, serving

asks = pytest.mark.skipif(find_spec("httpx") is None, reason="asking a provider needs httpx, the extra 'live'")

USUAL = PLACES["anthropic"].base_url
CALL: dict[str, Any] = {
    "scenario": "call",
    "agent": {"system": "You help."},
    "caller": [{"say": "Hello.", "at": "500ms"}, {"say": "And you?", "at": "6s"}],
    "llm": [{"text": "Good day."}, {"text": "Fine, thanks."}],
}
ALL = {
    "provider": "anthropic",
    "model": "m-1",
    "endpoint": "https://models.example/base",
    "auth": {"env": "TEAM_KEY"},
    "proxy": "http://proxy.example:3128",
    "tls": {"verify": True, "ca_file": "certs/ca.pem"},
}


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def launch(**more: Any) -> Launch:
    return Launch(**{"provider": "anthropic", "model": "m", **more})


# -- as data ------------------------------------------------------------------------------------------------------


def test_settings_come_back_from_data_as_they_were_given() -> None:
    settings = Launch.from_dict(ALL)
    assert settings == Launch(
        provider="anthropic",
        model="m-1",
        endpoint="https://models.example/base",
        auth="TEAM_KEY",
        proxy="http://proxy.example:3128",
        verify=True,
        ca_file="certs/ca.pem",
    )
    assert settings.to_dict() == ALL
    assert launch().to_dict() == {"provider": "anthropic", "model": "m"}
    assert Launch.from_dict(launch().to_dict()) == launch()


def test_an_endpoint_that_was_chosen_stays_chosen_although_it_is_the_usual_one() -> None:
    chosen = launch(endpoint=USUAL)
    assert chosen.to_dict()["endpoint"] == USUAL
    assert Launch.from_dict(chosen.to_dict()) == chosen != launch()
    environ = {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": "https://elsewhere.example"}
    assert chosen.connect(environ).url == f"{USUAL}/v1/messages"
    assert launch().connect(environ).url == "https://elsewhere.example/v1/messages"
    assert launch().connect({"ANTHROPIC_API_KEY": KEY}) == chosen.connect({"ANTHROPIC_API_KEY": KEY})


def test_settings_are_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "launch.yaml"
    path.write_text("provider: ollama\nmodel: m\ntls: {verify: false}\n", encoding="utf-8")
    assert load_launch(path) == Launch(provider="ollama", model="m", verify=False)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"provider": "nobody"}, "launch.provider: it is none that is known; accepted is "),
        ({"model": ""}, "launch.model: accepted is a text of up to 2048 characters on one line"),
        ({"model": "m" * 2_049}, "launch.model: accepted is a text of up to 2048 characters on one line"),
        ({"endpoint": "ftp://x"}, "launch.endpoint: accepted is http:// or https:// with a host, without user, "),
        ({"endpoint": f"https://me:{KEY}@x"}, "launch.endpoint: accepted is http:// or https:// with a host, "),
        ({"endpoint": f"https://x/?key={KEY}"}, "launch.endpoint: accepted is http:// or https:// with a host, "),
        ({"proxy": f"http://:{KEY}@x"}, "launch.proxy: accepted is http:// or https:// with a host, without user, "),
        ({"auth": KEY}, "launch.auth: accepted is a mapping"),
        ({"auth": {"env": KEY}}, "launch.auth: accepted is the name of the environment variable that has the key, not"),
        ({"auth": {"key": KEY}}, "launch.auth.key: nothing of that name belongs here; accepted is env"),
        ({"api_key": KEY}, "launch.api_key: nothing of that name belongs here; accepted is provider, model, "),
        ({"tls": {"verify": KEY}}, "launch.tls.verify: accepted is true or false"),
        ({"tls": {"ca_file": f"{KEY}\n"}}, "launch.ca_file: accepted is a text of up to 2048 characters on one line"),
    ],
)
def test_what_cannot_be_used_is_told_by_its_place_and_never_repeated(change: dict[str, Any], told: str) -> None:
    with pytest.raises(LaunchError) as refused:
        Launch.from_dict({**ALL, **change})
    assert str(refused.value).startswith(told)
    assert KEY not in str(refused.value)


def test_what_is_missing_is_named() -> None:
    with pytest.raises(LaunchError, match=r"^launch: model is missing; accepted are provider, model, endpoint, auth, "):
        Launch.from_dict({"provider": "anthropic"})


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (None, "there is no such file; accepted is launch settings"),
        (b"[]", "accepted is a mapping"),
        (b"provider: \xff", "found bytes that are no UTF-8; accepted is launch settings in YAML"),
        (b"a: [", "1"),
        (b"#" * (MAX_BYTES + 1), f"it has more than {MAX_BYTES} bytes; accepted is launch settings of up to"),
    ],
)
def test_a_file_that_is_something_else_is_told_by_its_name(raw: bytes | None, told: str, tmp_path: Path) -> None:
    path = tmp_path / "launch.yaml"
    if raw is not None:
        path.write_bytes(raw)
    with pytest.raises(LaunchError) as refused:
        load_launch(path)
    assert str(refused.value).startswith(f"{path}:")
    assert told in str(refused.value)


# -- applied ------------------------------------------------------------------------------------------------------


def test_the_key_comes_from_the_variable_that_is_named_and_shows_in_no_text() -> None:
    environ = {"TEAM_KEY": KEY, "ANTHROPIC_API_KEY": "another"}
    settings = launch(auth="TEAM_KEY", proxy="http://proxy.example:3128")
    found = settings.connect(environ)
    assert found.headers["x-api-key"] == KEY
    assert found.secrets == (KEY, "http://proxy.example:3128")
    assert (found.proxy, found.verify, found.ca_file) == ("http://proxy.example:3128", True, None)
    assert KEY not in repr(settings) + repr(found)
    with pytest.raises(
        EndpointError, match=r"^TEAM_KEY is not set; accepted is the provider's key in the environment$"
    ):
        settings.connect({"ANTHROPIC_API_KEY": "another"})


def test_a_server_without_keys_needs_one_only_where_a_variable_is_named() -> None:
    assert launch(provider="ollama").connect({}).headers == {}
    with pytest.raises(EndpointError, match=r"^TEAM_KEY is not set"):
        launch(provider="ollama", auth="TEAM_KEY").connect({})


@asks
def test_certificates_have_to_be_there(tmp_path: Path) -> None:
    settings = launch(ca_file=str(tmp_path / "ca.pem"))
    environ = {"ANTHROPIC_API_KEY": KEY}
    with pytest.raises(LaunchError, match="ca_file: there is no such file; accepted is a file with certificates"):
        settings.connect(environ)
    (tmp_path / "ca.pem").write_text("no certificate", encoding="utf-8")
    with pytest.raises(FetchError, match="ca_file: it holds no certificates; accepted is a file with some, in PEM"):
        settings.fetcher(environ).fetch({})


@asks
def test_client_and_certificates_are_set_up_as_the_settings_say(monkeypatch: pytest.MonkeyPatch) -> None:
    import certifi
    import httpx

    seen: list[dict[str, Any]] = []

    class Client:
        def __init__(self, **more: Any) -> None:
            seen.append(more)
            raise httpx.ConnectError("enough was seen")

    monkeypatch.setattr(httpx, "Client", Client)
    for settings in (
        launch(),
        launch(verify=False, proxy="http://proxy.example:3128"),
        launch(ca_file=certifi.where()),
    ):
        with pytest.raises(FetchError):
            settings.fetcher({"ANTHROPIC_API_KEY": KEY}).fetch({})
    assert [(each["proxy"], each["verify"]) for each in seen[:2]] == [
        (None, True),
        ("http://proxy.example:3128", False),
    ]
    assert seen[2]["verify"].cert_store_stats()["x509_ca"] > 0


def recorded(settings: Launch, environ: dict[str, str]) -> Recorded:
    """The call, recorded with an answer that takes no time."""
    fetcher = settings.fetcher(environ, now_ns=lambda: 0)
    return record(sim.load(CALL), settings.provider, settings.model, environ={}, fetcher=fetcher)


@asks
def test_a_provider_is_asked_through_the_proxy_that_the_settings_name() -> None:
    with serving("anthropic", sim.load(CALL).llm.rounds) as provider:
        proxy = provider.base_url.removesuffix("/base")
        settings = launch(endpoint="http://models.invalid/base", proxy=proxy)
        found = recorded(settings, {"ANTHROPIC_API_KEY": KEY})
    assert found.result.heard == ["Good day.", "Fine, thanks."]
    assert provider.paths == ["http://models.invalid/base/v1/messages"] * 2
    written = dump_cassette(found.cassette) + found.result.timeline.to_jsonl()
    assert [each for each in ("models.invalid", "127.0.0.1", KEY) if each in written] == []


@asks
def test_a_key_that_is_renewed_in_mid_session_is_used_and_shows_nowhere() -> None:
    def session(renew: Callable[[Provider, dict[str, str]], None]) -> tuple[Recorded, list[str]]:
        with serving("anthropic", sim.load(CALL).llm.rounds) as provider:
            environ = {"TEAM_KEY": KEY}
            renew(provider, environ)
            found = recorded(launch(endpoint=provider.base_url, auth="TEAM_KEY"), environ)
        return found, [headers["x-api-key"] for headers in provider.headers]

    def renewing(provider: Provider, environ: dict[str, str]) -> None:
        answer = provider.answer

        def answered(*asked: Any) -> Any:
            environ["TEAM_KEY"] = "renewed-5c1d"
            return answer(*asked)

        provider.answer = answered  # type: ignore[method-assign]

    kept, same = session(lambda provider, environ: None)
    found, keys = session(renewing)
    assert (same, keys) == ([KEY, KEY], [KEY, "renewed-5c1d"])
    assert found.result.digest == kept.result.digest
    assert found.result.effects == kept.result.effects
    assert len(kept.result.effects) == 2
    assert dump_cassette(found.cassette) == dump_cassette(kept.cassette)
    written = dump_cassette(found.cassette) + found.result.timeline.to_jsonl()
    assert [each for each in ("TEAM_KEY", "renewed-5c1d", KEY) if each in written] == []


def test_what_was_secret_stays_so_when_it_has_been_renewed(monkeypatch: pytest.MonkeyPatch) -> None:
    echo = Exchange({}, 401, 0, ((0, f"{KEY} renewed-5c1d".encode()),), 0, False)
    monkeypatch.setattr(Fetcher, "_exchange", lambda self, body: echo)
    first = launch().connect({"ANTHROPIC_API_KEY": KEY})
    second = replace(first, headers={"x-api-key": "renewed-5c1d"}, secrets=("renewed-5c1d",))
    endpoints = iter([first, second])
    fetcher = Fetcher(first, refresh=lambda: next(endpoints))
    assert [fetcher.fetch({}).body for _ in range(2)] == [b"[redacted] renewed-5c1d", b"[redacted] [redacted]"]


@asks
def test_a_key_that_is_gone_in_mid_session_is_one_sentence() -> None:
    with serving("anthropic", sim.load(CALL).llm.rounds) as provider:
        environ = {"ANTHROPIC_API_KEY": KEY}
        settings = launch(endpoint=provider.base_url)
        fetcher = settings.fetcher(environ)
        environ.clear()
        with pytest.raises(ScenarioError, match="request 1 to anthropic was not sent: ANTHROPIC_API_KEY is not set"):
            record(sim.load(CALL), "anthropic", "m", environ={}, fetcher=fetcher)
    assert provider.bodies == []


def test_the_environment_itself_can_be_handed_over() -> None:
    assert launch(provider="ollama").connect(os.environ).wire == "ollama"
