"""Small changes of the library that would make it wrong, and the tests that must notice each of them."""
