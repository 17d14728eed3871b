"""A step of a CI job: fails unless the index agrees with the bucket about each key that the build has published."""

import os
import sys
from typing import List

import tally_sdk as sdk


def main(bucket: str, keys: List[str]) -> int:
    api_key = os.environ.get("SERVICE_API_KEY")
    if not api_key:
        raise ValueError("SERVICE_API_KEY environment variable not set")
    sdk.login_with_api_key(api_key, registry_url=os.environ["SERVICE_REGISTRY_URL"])
    explanations = [sdk.explain(bucket, key) for key in keys]
    for each in explanations:
        print(f"{each.key}: {each.sentence}")
    return 0 if all(each.agrees is True for each in explanations) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
