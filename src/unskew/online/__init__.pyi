from .ab_tests import ab_test as ab_test
from .click_models import Clicks as Clicks
from .click_models import ForcedExposure as ForcedExposure
from .interleaving import interleave as interleave
from .interleaving import multileave as multileave
from .judgment_reuse import reuse_judgments as reuse_judgments
from .online_tests import online_tests as online_tests
from .top_lists import top_lists as top_lists
