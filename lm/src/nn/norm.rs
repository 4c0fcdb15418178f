//! Normalisation by the root of the mean square, computed in float32 whatever the model's number format.

use tch::{Kind, Tensor};

use crate::error::Result;
use crate::nn::parameter::{Module, Parameter, Piece};

/// How a checkpoint stores the weight of a norm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NormWeight {
    /// As the factor.
    Factor,
    /// As the factor less one.
    FactorLessOne,
}

/// A tensor named `name` of `width` numbers as factors of a norm.
fn factors(name: String, width: i64, weight_is: NormWeight) -> Piece {
    let piece = Piece::new(name, [width]);
    match weight_is {
        NormWeight::Factor => piece,
        NormWeight::FactorLessOne => piece.take(|weight| Ok(weight.f_add_scalar(1.0)?)),
    }
}

/// `1 / sqrt(mean(x²) + epsilon)` over the last dimension, which is kept.
fn inverse_root(rows: &Tensor, width: i64, epsilon: f64) -> Result<Tensor> {
    let mut scale = rows.f_linalg_norm(2.0, [-1].as_slice(), true, Kind::Float)?;
    let mut scale = scale.f_square_()?;
    let mut scale = scale.f_mul_scalar_(1.0 / width as f64)?;
    let mut scale = scale.f_add_scalar_(epsilon)?;
    Ok(scale.f_rsqrt_()?)
}

/// A norm over the last dimension.
#[derive(Debug)]
pub(crate) struct RmsNorm {
    weight: Parameter,
    width: i64,
    epsilon: f64,
}

impl RmsNorm {
    /// The norm whose weight is `name.weight`.
    pub(crate) fn new(name: &str, width: i64, epsilon: f64, weight_is: NormWeight) -> Self {
        let weight = Parameter::new(
            [width],
            Kind::Float,
            vec![factors(format!("{name}.weight"), width, weight_is)],
        );
        Self { weight, width, epsilon }
    }

    /// In the number format that it is given.
    pub(crate) fn forward(&self, rows: &Tensor) -> Result<Tensor> {
        let mut normal = rows.f_mul(&inverse_root(rows, self.width, self.epsilon)?)?;
        Ok(normal.f_mul_(self.weight.tensor())?.f_to_kind(rows.f_kind()?)?)
    }
}

impl Module for RmsNorm {
    fn parameters<'a>(&'a mut self, list: &mut Vec<&'a mut Parameter>) {
        list.push(&mut self.weight);
    }
}

/// Norms of queries and of keys, each over one head, done for both at once.
#[derive(Debug)]
pub(crate) struct HeadNorm {
    weight: Parameter,
    width: i64,
    epsilon: f64,
}

impl HeadNorm {
    /// `name.q_norm` for the first `queries` heads, `name.k_norm` for the `keys` heads behind them.
    pub(crate) fn new(name: &str, queries: i64, keys: i64, width: i64, epsilon: f64, weight_is: NormWeight) -> Self {
        let pieces = vec![
            factors(format!("{name}.q_norm.weight"), width, weight_is)
                .put(move |whole| Ok(whole.f_narrow(0, 0, queries)?)),
            factors(format!("{name}.k_norm.weight"), width, weight_is)
                .put(move |whole| Ok(whole.f_narrow(0, queries, keys)?)),
        ];
        Self {
            weight: Parameter::new([queries + keys, width], Kind::Float, pieces),
            width,
            epsilon,
        }
    }

    /// Normalises heads `[n, queries + keys, width]` in place.
    pub(crate) fn apply(&self, heads: &mut Tensor) -> Result<()> {
        let scale = inverse_root(heads, self.width, self.epsilon)?;
        if heads.f_kind()? == Kind::Float {
            let _ = heads.f_mul_(&scale)?.f_mul_(self.weight.tensor())?;
        } else {
            heads.f_copy_(&scale.f_mul(heads)?.f_mul_(self.weight.tensor())?)?;
        }
        Ok(())
    }
}

impl Module for HeadNorm {
    fn parameters<'a>(&'a mut self, list: &mut Vec<&'a mut Parameter>) {
        list.push(&mut self.weight);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use tch::{Device, Kind, Tensor};

    use super::inverse_root;

    #[test]
    fn low_precision_is_normalised_in_float32() {
        let rows = Tensor::arange(8, (Kind::Float, Device::Cpu)).view([2, 4]);
        let exact = inverse_root(&rows, 4, 1e-6).unwrap();
        let low = inverse_root(&rows.to_kind(Kind::BFloat16), 4, 1e-6).unwrap();
        assert_eq!(low.kind(), Kind::Float);
        assert_eq!(exact.size(), [2, 1]);
        assert!((exact - low).abs().max().double_value(&[]) < 1e-6);
    }
}
