"""A browser for tests: opens the address and follows where it leads. What it shows at the end goes to the file BROWSER_LOG."""

import os
import sys
import urllib.error
import urllib.request

opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
try:
    with opener.open(sys.argv[1], timeout=300) as page:
        text = page.read().decode()
except urllib.error.HTTPError as error:
    text = error.read().decode()
with open(os.environ["BROWSER_LOG"], "a", encoding="utf-8") as log:
    log.write(text + "\n")
