"""An HTTP server on the loopback interface, in a thread of its own, that answers every request by a function."""

import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


# Client and server share one interpreter lock. By default a thread may keep it for 5 ms while the other waits, which is longer than the
# round trips that are measured here.
sys.setswitchinterval(0.0001)


class Loopback:
    """`answer()` gives the headers and the body (bytes) of the next answer, whatever was asked. `url` is where it listens."""

    def __init__(self, answer):
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self):
                self.rfile.read(int(self.headers.get("content-length", 0)))
                headers, body = answer()
                self.send_response(200)
                for name, value in {**headers, "content-length": str(len(body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_GET

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
