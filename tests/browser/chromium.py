"""A headless Chromium, spoken to in the DevTools protocol over two pipes.

Needs nothing but Python and Debian's `chromium`. `find()` is its path, or None.
"""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find():
    return next(filter(None, map(shutil.which, NAMES)), None)


class Failure(Exception):
    """The browser said no, or nothing."""


class Browser:
    """One browser with one page. Use it as a context."""

    def __init__(self, path, seconds=20):
        self.seconds = seconds
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_read, self.writes = os.pipe()
        self.reads, to_write = os.pipe()
        command = [path, "--headless=new", "--remote-debugging-pipe", "--no-first-run",
                   "--disable-gpu", "--disable-extensions", "--disable-background-networking",
                   "--disable-component-update", "--disable-sync", "--mute-audio",
                   "--hide-scrollbars", "--force-color-profile=srgb",
                   f"--user-data-dir={self.folder.name}/profile"]
        if os.geteuid() == 0:
            command.append("--no-sandbox")  # it refuses to run as root with one
        # The protocol is spoken on the descriptors 3 and 4.
        self.log = open(f"{self.folder.name}/log", "wb")
        self.process = subprocess.Popen(
            ["/bin/bash", "-c", f'exec "$@" 3<&{to_read} 4>&{to_write}', "bash", *command,
             "about:blank"],
            pass_fds=(to_read, to_write), stdin=subprocess.DEVNULL, stdout=self.log,
            stderr=self.log)
        os.close(to_read)
        os.close(to_write)
        self.buffer, self.number, self.events, self.session = b"", 0, [], None
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(t["targetId"] for t in targets if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Browser.setDownloadBehavior", behavior="allow", eventsEnabled=False,
                  downloadPath=self.folder.name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.session = None
            self.call("Browser.close")
            self.process.wait(10)
        except (Failure, OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        for descriptor in (self.reads, self.writes):
            os.close(descriptor)
        self.log.close()
        self.folder.cleanup()

    def _message(self, until):
        while b"\0" not in self.buffer:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.reads], [], [], left)[0]:
                raise Failure(f"the browser has not answered in {self.seconds} s")
            data = os.read(self.reads, 1 << 20)
            if not data:
                self.log.flush()
                with open(self.log.name, encoding="utf-8", errors="replace") as log:
                    raise Failure(f"the browser has ended: {log.read()[-2000:]}")
            self.buffer += data
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **parameters):
        """What the browser answers; what happened meanwhile goes to `events`."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.writes, data):]
        until = time.monotonic() + self.seconds
        while True:
            answer = self._message(until)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise Failure(f"{method}: {answer['error']['message']}")
                return answer["result"]
            if "method" in answer:
                self.events.append(answer)

    def wait_for(self, method):
        """The next event of this name, also one that was seen before."""
        until = time.monotonic() + self.seconds
        while True:
            for event in self.events:
                if event["method"] == method:
                    self.events.remove(event)
                    return event["params"]
            message = self._message(until)
            if "method" in message:
                self.events.append(message)

    def open(self, path, fragment=""):
        """Loads a file anew. `faults` and `requests` then say what came of it."""
        self.call("Page.navigate", url="about:blank")  # else a new fragment would load nothing
        self.wait_for("Page.loadEventFired")
        self.events.clear()
        self.call("Page.navigate", url=f"file://{os.path.abspath(path)}{fragment}")
        self.wait_for("Page.loadEventFired")

    def evaluate(self, expression):
        """The value of an expression of the page's script, awaited."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True, userGesture=True)
        if "exceptionDetails" in result:
            raise Failure(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def faults(self):
        """Errors and warnings of the console, exceptions, refusals of the security policy."""
        self.evaluate("0")
        found = []
        for event in self.events:
            p = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                found.append(p["exceptionDetails"].get("exception", {}).get("description", str(p)))
            elif event["method"] == "Runtime.consoleAPICalled" and p["type"] in ("error", "warning",
                                                                                 "assert"):
                found.append(str(p["args"]))
            elif event["method"] == "Log.entryAdded" and p["entry"]["level"] in ("error",
                                                                               "warning"):
                found.append(p["entry"]["text"])
        return found

    def requests(self):
        """Every address that was asked for since the page was opened."""
        self.evaluate("0")
        return [event["params"]["request"]["url"] for event in self.events
                if event["method"] == "Network.requestWillBeSent"]

    def size(self, width, height, mobile=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=mobile)

    def prefer(self, **features):
        """prefer(prefers_color_scheme="dark")"""
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": name.replace("_", "-"), "value": value} for name, value in features.items()])

    def press(self, key, modifiers=0):
        """A key as a user presses it: "n", "ArrowRight", "Escape"."""
        event = {"key": key, "modifiers": modifiers}
        codes = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Escape": 27,
                 "Home": 36, "End": 35, "Tab": 9, "Enter": 13, " ": 32}
        code = codes.get(key, ord(key.upper()) if len(key) == 1 else 0)
        text = {"text": {"Enter": "\r"}.get(key, key)} if len(key) == 1 or key == "Enter" else {}
        self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown",
                  windowsVirtualKeyCode=code, **event, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", windowsVirtualKeyCode=code, **event)

    def point_of(self, selector):
        """The middle of an element that is seen, after the page has scrolled to it."""
        return self.evaluate(
            "(async () => { const e = document.querySelector(" + json.dumps(selector) + ");"
            "const frame = () => new Promise(requestAnimationFrame);"
            "e.scrollIntoView({block: 'center', inline: 'center', behavior: 'instant'});"
            "await frame(); await frame();"
            "const b = e.getBoundingClientRect();"
            "return [(b.left + b.right) / 2, (b.top + b.bottom) / 2]; })()")

    def move(self, selector):
        x, y = self.point_of(selector)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, selector):
        x, y = self.point_of(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def tap(self, selector):
        """A finger (the page must have been opened with size(..., mobile=True))."""
        x, y = self.point_of(selector)
        self.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def saved(self, ending):
        """Path and text of the file that was saved last, waited for and taken away."""
        until = time.monotonic() + self.seconds
        while time.monotonic() < until:
            names = [n for n in os.listdir(self.folder.name) if n.endswith(ending)]
            if names:
                path = os.path.join(self.folder.name, names[0])
                time.sleep(0.05)
                with open(path, encoding="utf-8") as file:
                    text = file.read()
                os.unlink(path)
                return names[0], text
            time.sleep(0.02)
        raise Failure(f"no file {ending} was saved")

    def screenshot(self, path):
        data = self.call("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
