"""Which addresses a request to a configured URL may go to: public ones, and nothing that leads inside."""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

# No place for a web server, or a way around the rules for IPv4; not every release of Python says so.
_NOT_IPV4 = (IPv4Network("192.88.99.0/24"),)
_IPV6 = IPv6Network("2000::/3")
_NOT_IPV6 = tuple(map(IPv6Network, ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")))


def is_public(text: str) -> bool:
    """Whether the address is a unicast one of the public internet.

    Private, loopback, link-local (metadata servers), shared (CGNAT), multicast and reserved ones are not; nor is IPv4
    inside IPv6 (mapped, compatible, 6to4, NAT64, Teredo).
    """
    try:
        address = ip_address(text)
    except ValueError:
        return False
    return _is_public_v4(address) if isinstance(address, IPv4Address) else _is_public_v6(address)


def _is_public_v4(address: IPv4Address) -> bool:
    barred = address.is_multicast or address.is_reserved or any(address in net for net in _NOT_IPV4)
    return address.is_global and not barred


def _is_public_v6(address: IPv6Address) -> bool:
    barred = address.scope_id is not None or any(address in net for net in _NOT_IPV6)
    return address in _IPV6 and address.is_global and not barred
