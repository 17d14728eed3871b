"""A script: prints the objects that match the query of its arguments."""

import os
import sys

import tally_sdk as sdk


def main() -> None:
    api_key = os.environ.get("SERVICE_API_KEY")
    if not api_key:
        raise ValueError("SERVICE_API_KEY environment variable not set")
    sdk.login_with_api_key(api_key, registry_url=os.environ["SERVICE_REGISTRY_URL"])
    for found in sdk.search(" ".join(sys.argv[1:])):
        print(found.bucket, found.key, found.size)


if __name__ == "__main__":
    main()
