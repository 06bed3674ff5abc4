"""Chapter 2 of Fathony (2019) repeated: ``python -m reproduce TABLE …``. Results and pages are made from one store."""
