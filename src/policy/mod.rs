//! Selection policies: the contract, the draw, the trace.
