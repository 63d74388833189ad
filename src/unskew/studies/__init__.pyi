from .study import StudyResult as StudyResult
