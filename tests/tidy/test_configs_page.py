"""docs/configs.md says what the definitions say."""

from tools import render_configs


def test_the_page_is_fresh() -> None:
    page = render_configs.PAGE.read_text() if render_configs.PAGE.is_file() else ""
    assert page == render_configs.render(), "run 'python -m tools.render_configs'"
