//! Final selection, grading and medals.
