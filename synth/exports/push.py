"""An exported folder on the Hugging Face hub, by the hub's own client."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from records.errors import ConfigError, SynthError, UnavailableError


class HubRepository:
    """A data set on the hub that may be written to."""

    def __init__(self, name: str, *, private: bool = False) -> None:
        """Ask the hub who we are. ConfigError without a token that it knows, for a name that is
        none, or where the client is told to stay offline; UnavailableError where it does not
        answer."""
        try:
            from huggingface_hub import HfApi, constants
        except ImportError as error:
            raise ConfigError("--push needs the extra export: agentic-synth[export]") from error
        _check_name(name)
        if constants.HF_HUB_OFFLINE:
            raise ConfigError(
                f"--push {name}: HF_HUB_OFFLINE is set, so nothing can be uploaded; unset it, or "
                "leave --push away"
            )
        self.name = name
        self._private = private
        self._api = HfApi(library_name="agentic-synth")
        with _hub_errors(name, "nothing was written"):
            self._api.whoami()

    def upload(self, folder: Path) -> str:
        """Make the repository unless it is there, and put the folder's files in one commit; the
        address of the commit. An error says how to try again."""
        command = f"hf upload {self.name} {folder} --repo-type dataset"
        with _hub_errors(self.name, f"the export is whole; to upload it again: {command}"):
            self._api.create_repo(
                self.name, repo_type="dataset", private=self._private, exist_ok=True
            )
            commit = self._api.upload_folder(
                repo_id=self.name,
                folder_path=folder,
                repo_type="dataset",
                commit_message="Export of agentic-synth",
            )
        return str(commit.commit_url)


def _check_name(name: str) -> None:
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id

    try:
        validate_repo_id(name)
    except HFValidationError as error:
        raise ConfigError(f"--push {name}: {error}") from error
    if name.count("/") != 1:
        raise ConfigError(f"--push {name}: the name is OWNER/NAME")


@contextmanager
def _hub_errors(name: str, after: str) -> Iterator[None]:
    """Errors of the hub's client as ours; `after` says how things stand."""
    from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError

    try:
        yield
    except LocalTokenNotFoundError as error:
        raise ConfigError(
            f"--push {name}: there is no token; set HF_TOKEN, or run `hf auth login` ({after})"
        ) from error
    except HfHubHTTPError as error:
        status = error.response.status_code
        if status == 401:
            raise ConfigError(
                f"--push {name}: the hub does not know the token; set HF_TOKEN to another, or run "
                f"`hf auth login` ({after})"
            ) from error
        told = error.server_message or str(error)
        raise SynthError(f"--push {name}: the hub answers {status}: {told} ({after})") from error
    except Exception as error:  # its client passes on errors of several HTTP libraries
        raise UnavailableError(f"--push {name}: {error!r} ({after})") from error
