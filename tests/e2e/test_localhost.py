"""What `localhost` means in a cell: 127.0.0.1 first in every language, so that a client reaches a server which listens
only there; ::1 has the names that Debian gives it."""
import pytest

from helpers import need, ok

FIRST = {
    "python": "import socket; print(socket.getaddrinfo('localhost', 80, type=socket.SOCK_STREAM)[0][4][0])",
    "javascript": "require('dns').lookup('localhost', (error, address) => console.log(error || address))",
    "ruby": "require 'socket'; puts Addrinfo.getaddrinfo('localhost', 80, nil, :STREAM).first.ip_address",
    "go": 'package main\nimport ("fmt"; "net")\nfunc main() { found, err := net.LookupHost("localhost"); fmt.Println(found[0], err) }',
    "c": r"""
#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
int main(void)
{
    struct addrinfo *found, hints = {.ai_socktype = SOCK_STREAM};
    char text[64] = "";
    if (getaddrinfo("localhost", "80", &hints, &found) != 0)
        return 1;
    getnameinfo(found->ai_addr, found->ai_addrlen, text, sizeof text, NULL, 0, NI_NUMERICHOST);
    puts(text);
}
""",
    "bash": "getent ahosts localhost | head -n 1 | cut -d ' ' -f 1",
    "java": "public class Main { public static void main(String[] a) throws Exception {"
            " System.out.println(java.net.InetAddress.getByName(\"localhost\").getHostAddress()); } }",
}

# A server on 127.0.0.1 alone, and a client that knows it as localhost.
TALK = {
    "python": """
import socket
server = socket.create_server(('127.0.0.1', 0))
client = socket.create_connection(('localhost', server.getsockname()[1]), 5)
print(client.getpeername()[0])
""",
    "javascript": """
const server = require('net').createServer(peer => peer.end('127.0.0.1\\n')).listen(0, '127.0.0.1', () => {
  const client = require('net').connect({port: server.address().port, host: 'localhost', autoSelectFamily: false})
  client.on('error', error => console.log(error.message)).pipe(process.stdout)
  client.on('close', () => server.close())
})
""",
    "ruby": """
require 'socket'
server = TCPServer.new('127.0.0.1', 0)
puts TCPSocket.new('localhost', server.addr[1]).peeraddr[3]
""",
}


@pytest.mark.parametrize("language", FIRST)
def test_localhost_is_first_of_all_ipv4(language):
    need(language)
    assert ok(language, FIRST[language]).split()[0] == "127.0.0.1"


@pytest.mark.parametrize("language", TALK)
def test_a_server_on_ipv4_is_reached_as_localhost(language):
    need(language)
    assert ok(language, TALK[language]) == "127.0.0.1\n"


@pytest.mark.parametrize("name", ["ip6-localhost", "ip6-loopback"])
def test_ipv6_loopback_has_names(name):
    code = f"""
import socket
server = socket.create_server(('{name}', 0), family=socket.AF_INET6)
print(socket.create_connection(('::1', server.getsockname()[1]), 5).getpeername()[0])
print(socket.getaddrinfo('{name}', 80, socket.AF_INET6, socket.SOCK_STREAM)[0][4][0])
"""
    assert ok("python", code) == "::1\n::1\n"
