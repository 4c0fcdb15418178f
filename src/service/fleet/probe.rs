//! Probes: small programs whose output shows that a worker runs programs again.

use std::time::Duration;

use super::wire::{ProbeOrder, Probed};
use crate::sandbox::Limits;
use crate::scheduler::{fresh_id, sha256_hex};
use crate::service::queue::Class;

/// Longest run of a probe.
const PROBE_TIME: Duration = Duration::from_secs(60);

/// Part of a probe for slots with a GPU. Where there is no driver there is nothing to look at.
const CUDA: &str = r#"
import ctypes
try:
    cuda = ctypes.CDLL("libcuda.so.1")
except OSError:
    cuda = None
if cuda is not None:
    count = ctypes.c_int(0)
    assert cuda.cuInit(0) == 0, "CUDA does not start"
    assert cuda.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0, "CUDA sees no GPU"
"#;

/// A probe that a worker is to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Probe {
    probe_id: String,
    class: Class,
}

impl Probe {
    pub(super) fn new(class: Class) -> Self {
        Self {
            probe_id: fresh_id(),
            class,
        }
    }

    /// What the worker gets.
    pub(super) fn order(&self, limits: &Limits) -> ProbeOrder {
        let cuda = match self.class {
            Class::Cpu => "",
            Class::Gpu => CUDA,
        };
        ProbeOrder {
            probe_id: self.probe_id.clone(),
            class: self.class,
            code: format!(
                "{cuda}\nimport hashlib\nprint(hashlib.sha256(b\"{}\").hexdigest())\n",
                self.probe_id
            ),
            limits: Limits {
                wall: PROBE_TIME,
                ..limits.clone()
            },
        }
    }

    /// Whether it went well: only a program that ran prints the right text.
    pub(super) fn is_good(&self, probed: &Probed) -> bool {
        probed.problem.is_none()
            && probed.probe_id == self.probe_id
            && probed.output.trim() == sha256_hex(self.probe_id.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_right_output_is_good() {
        let probe = Probe::new(Class::Gpu);
        let order = probe.order(&Limits::default());
        assert!(order.code.contains("libcuda") && order.code.contains(&order.probe_id));
        let good = Probed {
            output: sha256_hex(order.probe_id.as_bytes()),
            probe_id: order.probe_id,
            problem: None,
        };
        assert!(probe.is_good(&good));
        let wrong = Probed {
            output: String::new(),
            ..good.clone()
        };
        let failed = Probed {
            problem: Some("it failed".to_owned()),
            ..good.clone()
        };
        for other in [&wrong, &failed] {
            assert!(!probe.is_good(other));
        }
        assert!(!Probe::new(Class::Cpu).is_good(&good), "it is another probe");
    }
}
