import pytest

from agent_tui.errors import ToolError
from agent_tui.tools.addresses import check_addresses, check_host, resolve
from tests.support.rows import each_row

LOCAL = [
    "127.0.0.1",
    "127.8.8.8",
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "198.18.0.1",
    "203.0.113.80",
    "255.255.255.255",
    "::1",
    "fd00:ec2::254",
    "fec0::1",
    "2001:db8::1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b:1::1",
    "2002:7f00:1::",
    "2001:0:7f00:1::1",
]
NEVER = ["169.254.169.254", "fe80::1", "fe80::1%eth0", "0.0.0.0", "::", "224.0.0.1", "ff02::1"]


@each_row("address", LOCAL)
def test_addresses_of_this_machine_and_private_networks_need_the_setting(address: str):
    with pytest.raises(ToolError, match="fetch_private"):
        check_addresses("h", [address], may_be_private=False)
    check_addresses("h", [address], may_be_private=True)


@each_row("host", ["10.0.0.1", "LOCALHOST.", "a.localhost", "127.1", "::1"])
def test_a_host_that_says_a_private_address_itself_needs_the_setting(host: str):
    with pytest.raises(ToolError, match="fetch_private"):
        check_host(host, may_be_private=False)
    check_host(host, may_be_private=True)


def test_other_names_and_public_addresses_pass():
    check_host("localhost.example.com", may_be_private=False)
    check_host("8.8.8.8", may_be_private=False)


@each_row("address", [*NEVER, "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe"])
def test_link_local_addresses_are_never_asked(address: str):
    with pytest.raises(ToolError, match="is never fetched"):
        check_addresses("h", [address], may_be_private=True)


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8"])
def test_public_addresses_are_free(address: str):
    check_addresses("h", [address], may_be_private=False)


def test_one_private_address_among_public_ones_is_enough_to_refuse():
    with pytest.raises(ToolError, match=r"127\.0\.0\.1"):
        check_addresses("h", ["8.8.8.8", "127.0.0.1"], may_be_private=False)


@pytest.mark.parametrize("host", ["localhost", "0x7f.1", "2130706433", "127.1", "017700000001"])
def test_however_loopback_is_written_it_is_found_to_be_that(host: str):
    assert set(resolve(host, 80)) <= {"127.0.0.1", "::1"}
