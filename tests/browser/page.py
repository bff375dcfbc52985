"""Looks at a report.html as a reader does, in a real browser without a screen: keyboard, mouse, narrow windows.

Usage: page.py HTML. Prints what it saw as JSON; ends with 1 and says why where something is wrong. Needs selenium (../python/requirements.txt) and Debian's
chromium and chromium-driver.
"""

import json
import re
import sys
import tempfile
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

CHROMIUM = "/usr/bin/chromium"
DRIVER = "/usr/bin/chromedriver"
FLAGS = """--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
    --disable-component-update --disable-sync --disable-dev-shm-usage --force-prefers-reduced-motion"""
# A page that wants more of them before its slider is not one to use without a mouse.
TABS = 30


class Wrong(Exception):
    """The page does not do what it should."""


def expect(holds, told):
    if not holds:
        raise Wrong(told)


def browser(profile):
    for tool in [CHROMIUM, DRIVER]:
        expect(Path(tool).exists(), f"there is no {tool}: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in [*FLAGS.split(), f"--user-data-dir={profile}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=Service(DRIVER))


class Page:
    """A report, open in a browser."""

    def __init__(self, driver, path):
        self.driver = driver
        self.url = path.resolve().as_uri()
        # The browser's own first page is none of this one's.
        driver.get("about:blank")
        for log in ["browser", "performance"]:
            driver.get_log(log)
        driver.get(self.url)

    def find(self, selector):
        found = self.driver.find_elements(By.CSS_SELECTOR, selector)
        expect(len(found) == 1, f"{len(found)} elements are {selector}, not 1")
        return found[0]

    def press(self, key):
        ActionChains(self.driver).send_keys(key).perform()

    def slider(self, name):
        """A slider as an assistive program meets it: its name, its value in words, whether it can move up.

        The words are read from the attribute: since Chromium 156 the protocol's `valuetext` leaves `aria-valuetext` out, even that of an ARIA slider.
        """
        element = self.find(f"input#{name}[type=range]")
        asked = {"objectId": self.driver.execute_cdp_cmd("Runtime.evaluate", {"expression": f"document.getElementById('{name}')"})["result"]["objectId"]}
        [node] = self.driver.execute_cdp_cmd("Accessibility.queryAXTree", asked | {"role": "slider"})["nodes"]
        position, last = (float(element.get_property(key)) for key in ["value", "max"])
        return {"name": node["name"]["value"], "text": element.get_attribute("aria-valuetext"), "position": position, "can_rise": position < last}

    def seen(self):
        """The cell that the page shows, and what it says of it."""
        title = self.find("#cell-title").text
        named = re.search(r"floor (\S+?), ceiling (\S+)", title)
        expect(named, f"#cell-title says {title!r}, not a floor and a ceiling")
        numbers = self.find("#cell-numbers").text
        # Floors above the ceiling are on the sliders, too, and no cells.
        expect(re.search(r"\d", numbers) or self.find("#cell-state").text, "#cell-numbers has no number, and #cell-state does not say why")
        return {"title": title, "floor": named[1], "ceiling": named[2], "numbers": numbers}

    def sliders_agree(self, seen, when):
        for name in ["floor", "ceiling"]:
            text = self.slider(name)["text"]
            expect(text in [seen[name], f"{name} {seen[name]}"], f"{when}, the slider {name} says {text!r}, and the title {seen['title']!r}")

    def tab_to(self, name):
        for presses in range(1, TABS + 1):
            self.press(Keys.TAB)
            if self.driver.switch_to.active_element.get_attribute("id") == name:
                return presses
        raise Wrong(f"{TABS} presses of Tab do not come to the slider {name}")

    def steer(self, name):
        """Moves a slider one step and back by keyboard."""
        before = self.seen()
        there, back = (Keys.ARROW_RIGHT, Keys.ARROW_LEFT) if self.slider(name)["can_rise"] else (Keys.ARROW_LEFT, Keys.ARROW_RIGHT)
        self.press(there)
        after = self.seen()
        expect(after[name] != before[name], f"an arrow key on the slider {name} leaves the title at {after['title']!r}")
        expect(after["numbers"] != before["numbers"], f"an arrow key on the slider {name} leaves the numbers as they were")
        self.sliders_agree(after, f"after an arrow key on {name}")
        self.press(back)
        returned = self.seen()
        expect(returned == before, f"there and back on the slider {name} ends at {returned['title']!r}, not {before['title']!r}")
        return after

    def click_another_cell(self):
        before = self.seen()
        cells = self.driver.find_elements(By.CSS_SELECTOR, "svg [data-cell]")
        expect(len(cells) > 1, f"the map has {len(cells)} cells")
        for cell in [cells[0], cells[-1]]:
            ActionChains(self.driver).move_to_element(cell).click().perform()
            after = self.seen()
            if after["title"] != before["title"]:
                self.sliders_agree(after, "after a click on the map")
                expect(re.search(r"\d", after["numbers"]), "a click on the map shows no numbers")
                expect(after["numbers"] != before["numbers"], "a click on the map leaves the numbers as they were")
                return {"cells": len(cells), **after}
        raise Wrong("clicks on the first and the last cell of the map change nothing")

    def widths(self, window):
        """How wide the page is in a window of so many pixels."""
        sizes = {"width": window, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", sizes)
        inner, page, body = self.driver.execute_script(
            "return [window.innerWidth, document.documentElement.scrollWidth, document.body.scrollWidth]"
        )
        expect(inner == window, f"the window is {inner} px wide, not {window}")
        expect(max(page, body) <= window, f"at {window} px the page is {max(page, body)} px wide and scrolls sideways")
        return page

    def silence(self):
        """No complaint in the console, no request but for the page itself."""
        loud = [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in ["SEVERE", "WARNING"]]
        expect(not loud, f"the console says {loud}")
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        asked = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
        expect(self.url in asked, "the page was not seen to load")
        foreign = [url for url in asked if url != self.url and not url.startswith("data:")]
        expect(not foreign, f"the page asks for {foreign}")


def look(path):
    with tempfile.TemporaryDirectory() as profile:
        driver = browser(profile)
        try:
            page = Page(driver, path)
            report = {"title": driver.title, "first": page.seen()}
            expect(driver.title.strip(), "the page has no <title>")
            expect(re.search(r"\d", report["first"]["numbers"]), "#cell-numbers has no number at first")
            page.sliders_agree(report["first"], "at first")
            names = [page.slider(name)["name"] for name in ["floor", "ceiling"]]
            expect(all(names) and names[0] != names[1], f"the sliders' names are {names}")
            report["names"] = names
            report["tabs"] = page.tab_to("floor")
            report["floor_moved"] = page.steer("floor")
            page.tab_to("ceiling")
            report["ceiling_moved"] = page.steer("ceiling")
            report["clicked"] = page.click_another_cell()
            report["widths"] = {window: page.widths(window) for window in [720, 360]}
            page.silence()
            return report
        finally:
            driver.quit()


if __name__ == "__main__":
    try:
        print(json.dumps(look(Path(sys.argv[1])), indent=2, ensure_ascii=False))
    except Wrong as wrong:
        sys.exit(f"{sys.argv[1]}: {wrong}")
