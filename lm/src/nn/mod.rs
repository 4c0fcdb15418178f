//! Modules that architectures are composed of. Each exists once; what differs between models is a parameter of it.

pub(crate) mod attention;
pub(crate) mod conv;
pub(crate) mod cpu;
pub(crate) mod delta_rule;
pub(crate) mod gated_delta;
pub(crate) mod layout;
pub(crate) mod linear;
pub(crate) mod mlp;
pub(crate) mod moe;
pub(crate) mod norm;

pub(crate) mod parameter;
pub(crate) mod rotary;
