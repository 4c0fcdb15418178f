//! Device and number format of a model.

use clade_lm_api::messages::Load;
use tch::{Device, Kind};

use super::usual_device;
use crate::error::{LmError, Result};
use crate::weights::{Dtype, Weights};

/// Device and number format of a request.
///
/// # Errors
/// When one is not known, or there is no such device.
pub(super) fn place_of(request: &Load, weights: &dyn Weights) -> Result<(Device, Kind)> {
    let device = device_of(&request.device)?;
    let kind = match request.dtype.as_str() {
        "auto" if device == Device::Cpu => Kind::Float,
        "auto" => own_kind(weights),
        "float32" => Kind::Float,
        "bfloat16" => Kind::BFloat16,
        "float16" => Kind::Half,
        other => {
            return Err(LmError::Unsupported(format!(
                "dtype is '{other}', it must be auto, float32, bfloat16 or float16"
            )));
        }
    };
    Ok((device, kind))
}

fn device_of(name: &str) -> Result<Device> {
    let number = match name {
        "auto" => return Ok(usual_device()),
        "cpu" => return Ok(Device::Cpu),
        "cuda" => Some(0),
        other => other.strip_prefix("cuda:").and_then(|number| number.parse().ok()),
    };
    let Some(number) = number else {
        return Err(LmError::Unsupported(format!(
            "device is '{name}', it must be auto, cpu, cuda or a number of a GPU such as cuda:1"
        )));
    };
    let count = tch::Cuda::device_count();
    if i64::try_from(number).is_ok_and(|number| number < count) && tch::Cuda::is_available() {
        return Ok(Device::Cuda(number));
    }
    Err(LmError::Unsupported(match count {
        0 => format!(
            "device is '{name}', and this libtorch sees no GPU: `CLADE_TORCH=cuda make setup-torch` builds with CUDA where there is a driver"
        ),
        count => format!("device is '{name}', and there are GPUs 0 to {}", count - 1),
    }))
}

/// The format of most weights; bfloat16 for those that are quantised.
fn own_kind(weights: &dyn Weights) -> Kind {
    let mut sizes = [(Kind::Float, 0), (Kind::Half, 0), (Kind::BFloat16, 0)];
    for tensor in weights.tensors() {
        let kind = match tensor.dtype {
            Dtype::F32 => Kind::Float,
            Dtype::F16 => Kind::Half,
            Dtype::Bf16 | Dtype::F8E4m3 | Dtype::Quantized(_) => Kind::BFloat16,
        };
        let elements: i64 = tensor.shape.iter().product();
        for (known, size) in &mut sizes {
            if *known == kind {
                *size += elements;
            }
        }
    }
    let most = sizes.into_iter().max_by_key(|(_, size)| *size);
    most.map_or(Kind::Float, |(kind, _)| kind)
}

/// Name of a device, as options have it.
pub(super) fn device_name(device: Device) -> String {
    match device {
        Device::Cuda(number) => format!("cuda:{number}"),
        _ => "cpu".to_owned(),
    }
}

/// Name of a number format, as options have it.
pub(super) fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::BFloat16 => "bfloat16",
        Kind::Half => "float16",
        _ => "float32",
    }
}
