"""The channel to the kernel: refusals by request, busy and interrupted answers, and what is never waited for."""

from __future__ import annotations

import errno
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from netqos.errors import Retryable, Unsupported
from netqos_tc import links, netmsg, nfwire, uapi, wire
from netqos_tc.keys import ElementKey, ElementMap
from netqos_tc.netlink import Channel, Refused, RequestRefused
from netqos_tc.netmsg import Message, Request

Answers = list[tuple[int, int, bytes]]


class ScriptedSocket:
    """Answers each request by a script: for the n-th send, (type, flags, body) for each of its messages."""

    def __init__(self, *script: list[Answers]) -> None:
        self.script = list(script)
        self.sent: list[list[Message]] = []
        self._waiting: list[bytes] = []

    def send(self, data: bytes) -> None:
        requests = list(netmsg.messages(data))
        self.sent.append(requests)
        answers = self.script.pop(0)
        for request, parts in zip(requests, answers, strict=True):
            for kind, flags, body in parts:
                head = netmsg.HEADER.pack(netmsg.HEADER.size + len(body), kind, flags, request.sequence, 0)
                self._waiting.append(head + body)

    def recv(self, _size: int) -> bytes:
        if not self._waiting:
            raise TimeoutError
        return self._waiting.pop(0)

    def setsockopt(self, *_options: object) -> None: ...
    def settimeout(self, _seconds: float) -> None: ...
    def bind(self, _address: object) -> None: ...
    def getsockname(self) -> tuple[int, int]:
        return 4711, 0

    def close(self) -> None: ...


def ack(code: int = 0) -> tuple[int, int, bytes]:
    return netmsg.ERROR, 0x100, struct.pack("=i", -code) + bytes(16)


OBJECT = (uapi.NEWTCLASS, 0, b"class")
DONE = (netmsg.DONE, 0, struct.pack("=i", 0))
INTERRUPTED = (netmsg.DONE, netmsg.DUMP_INTERRUPTED, struct.pack("=i", 0))
REQUEST = Request(uapi.GETTCLASS, 0, b"")


def channel(*script: list[Answers]) -> tuple[Channel, ScriptedSocket]:
    scripted = ScriptedSocket(*script)
    with mock.patch("netqos_tc.netlink.socket.socket", return_value=scripted):
        return Channel.route(), scripted


def test_each_request_gets_its_own_answer_and_the_others_go_on() -> None:
    opened, _ = channel([[ack()], [ack(errno.EINVAL)], [ack()]])
    assert opened.write([REQUEST] * 3) == [None, Refused(code=errno.EINVAL), None]
    assert opened.writes == 2


def test_a_large_batch_is_cut_and_keeps_its_order() -> None:
    opened, scripted = channel([[ack()]] * 64, [[ack()]] * 35 + [[ack(errno.EPERM)]])
    answers = opened.write([REQUEST] * 100)
    assert [number for number, one in enumerate(answers) if one is not None] == [99]
    assert [len(sent) for sent in scripted.sent] == [64, 36]


def test_busy_is_tried_again_and_in_the_end_given_up() -> None:
    opened, _ = channel([[ack(errno.EBUSY)]], [[ack(errno.EBUSY)]], [[ack()]])
    assert opened.write([REQUEST]) == [None]
    opened, scripted = channel(*[[[ack(errno.EBUSY)]]] * 20)
    assert opened.write([REQUEST]) == [Refused(code=errno.EBUSY)]
    assert len(scripted.sent) < 12


def test_an_interrupted_dump_is_repeated_and_in_the_end_given_up() -> None:
    opened, _ = channel([[OBJECT, INTERRUPTED]], [[OBJECT, OBJECT, DONE]])
    assert len(opened.dump(REQUEST)) == 2
    opened, scripted = channel(*[[[OBJECT, INTERRUPTED]]] * 20)
    with pytest.raises(Retryable, match="interrupted"):
        opened.dump(REQUEST)
    assert len(scripted.sent) < 12


def test_a_refused_dump_and_a_missing_object_say_what_the_kernel_said() -> None:
    opened, _ = channel([[ack(errno.ENODEV)]], [[ack(errno.ENOENT)]])
    with pytest.raises(RequestRefused) as caught:
        opened.dump(REQUEST)
    assert caught.value.refused.name == "ENODEV"
    with pytest.raises(RequestRefused, match="No such file"):
        opened.get(REQUEST)


def test_an_object_that_the_kernel_hides_is_none() -> None:
    opened, _ = channel([[ack()]], [[OBJECT, ack()]])
    assert opened.find(REQUEST) is None
    found = opened.find(REQUEST)
    assert found is not None
    assert found.body == b"class"


def test_answers_to_earlier_requests_are_not_taken_for_ours() -> None:
    opened, scripted = channel([[ack()]], [[ack(errno.EPERM)]])
    scripted._waiting.append(netmsg.HEADER.pack(36, netmsg.ERROR, 0x100, 777, 0) + ack(errno.EINVAL)[2])
    assert opened.write([REQUEST]) == [None]
    assert opened.write([REQUEST]) == [Refused(code=errno.EPERM)]


def test_a_silent_kernel_is_no_endless_wait() -> None:
    opened, _ = channel([[]])
    with pytest.raises(Retryable, match="no netlink answer"):
        opened.get(REQUEST)


def test_in_a_transaction_one_refusal_is_told_by_its_element() -> None:
    element = nfwire.delete_element(ElementKey(ElementMap.TX4, "10.0.0.1"))
    begin, end = nfwire.batch_begin(), nfwire.batch_end()
    opened, _ = channel([[ack()], [ack()], [ack(errno.ENOENT)], [ack()]])
    assert opened.transact([element] * 2, begin=begin, end=end) == [None, Refused(code=errno.ENOENT)]
    assert opened.writes == 0


def test_a_refused_transaction_as_such_refuses_all() -> None:
    element = nfwire.delete_element(ElementKey(ElementMap.TX4, "10.0.0.1"))
    begin, end = nfwire.batch_begin(), nfwire.batch_end()
    opened, _ = channel([[ack(errno.EPERM)], [], [], []])
    assert opened.transact([element] * 2, begin=begin, end=end) == [Refused(code=errno.EPERM)] * 2


def test_a_kernel_without_the_protocol_is_unsupported() -> None:
    refused = OSError(errno.EPROTONOSUPPORT, "Protocol not supported")
    with mock.patch("netqos_tc.netlink.socket.socket", side_effect=refused), pytest.raises(Unsupported):
        Channel.netfilter()


@pytest.fixture
def open_channel() -> Iterator[Channel]:
    made = Channel.route()
    yield made
    made.close()


def test_ten_thousand_requests_use_one_descriptor(open_channel: Channel) -> None:
    loopback = wire.get_link(socket.if_nametoindex("lo"))
    before = len(list(Path("/proc/self/fd").iterdir()))
    names = {links.read_link(open_channel.get(loopback)).name for _ in range(10_000)}
    assert names == {"lo"}
    assert len(list(Path("/proc/self/fd").iterdir())) == before
