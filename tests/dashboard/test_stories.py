"""The examples of `trimtab up`, as its page tells them."""

from tests.dashboard.asking import app_of, entered
from trimtab.dashboard import StoryView

STORY = StoryView(
    namespace="to-zero", title="To zero", see="mailer sleeps", command="kubectl get thpa -n to-zero"
)


async def test_the_page_gets_what_to_see_and_what_to_try():
    app = app_of()
    app.stories = (STORY,)
    browser = await entered(app)
    assert (await browser.get("/api/stories")).json() == {
        "stories": [
            {
                "namespace": "to-zero",
                "title": "To zero",
                "see": "mailer sleeps",
                "command": "kubectl get thpa -n to-zero",
            }
        ]
    }


async def test_other_programs_have_no_stories():
    browser = await entered(app_of())
    assert (await browser.get("/api/stories")).json() == {"stories": []}
