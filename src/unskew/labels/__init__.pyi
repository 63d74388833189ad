from .annotation_plan import AnnotationPlan as AnnotationPlan
from .annotation_status import AnnotationStatus as AnnotationStatus
from .annotations import Annotation as Annotation
from .annotations import read_annotation as read_annotation
from .assisted import assisted as assisted
from .plan_annotation import plan_annotation as plan_annotation
