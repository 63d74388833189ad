from .metrics import assert_gate as assert_gate
from .metrics import check_metric as check_metric
from .parts import check_algorithm as check_algorithm
from .parts import check_splitter as check_splitter
