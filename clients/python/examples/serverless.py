"""A serverless function: finds objects by the words of its event."""

import os
from typing import Any, Dict, List

import tally_sdk as sdk


def _log_in() -> None:
    # an instance that is used again keeps what its first call did
    if sdk.logged_in() is not None:
        return
    api_key = os.environ.get("SERVICE_API_KEY")
    if not api_key:
        raise ValueError("SERVICE_API_KEY environment variable not set")
    sdk.login_with_api_key(api_key, registry_url=os.environ["SERVICE_REGISTRY_URL"])


def handler(event: Dict[str, Any], context: object) -> Dict[str, List[str]]:
    _log_in()
    return {"keys": [found.key for found in sdk.search(event["words"], limit=10)]}
