"""A container that runs on a schedule: starts a drift report of the bucket that its argument names."""

import os
import sys

import tally_sdk as sdk


def main(bucket: str) -> None:
    api_key = os.environ.get("SERVICE_API_KEY")
    if not api_key:
        raise ValueError("SERVICE_API_KEY environment variable not set")
    # the key stays in memory: nothing is written, so that the container needs no home
    sdk.login_with_api_key(api_key, registry_url=os.environ["SERVICE_REGISTRY_URL"])
    job = sdk.reindex(bucket, mode="report")
    print(f"{job.id} {job.state}")


if __name__ == "__main__":
    main(sys.argv[1])
