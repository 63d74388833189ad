from .result import StudyResult as StudyResult
