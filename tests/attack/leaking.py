"""Answers 401 to whatever comes, and takes 20 microseconds longer for some: `leaking.py WORD`."""

import socket
import sys
import time

ANSWER = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\n{}"


def main() -> None:
    slow = sys.argv[1].encode()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        sys.stdout.write(f"{listening.getsockname()[1]}\n")
        sys.stdout.flush()
        while True:
            connection, _ = listening.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with connection:
                while heard := connection.recv(1 << 16):
                    until = time.perf_counter() + (20e-6 if slow in heard else 0)
                    while time.perf_counter() < until:
                        pass
                    connection.sendall(ANSWER)


if __name__ == "__main__":
    main()
