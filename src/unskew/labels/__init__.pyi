from .annotation_plan import AnnotationPlan as AnnotationPlan
from .assisted import assisted as assisted
from .plan_annotation import plan_annotation as plan_annotation
from .read_annotation import read_annotation as read_annotation
