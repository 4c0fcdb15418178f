//! What the CPU computes with kernels of ours, in float32: products with weights in panels, and attention.
//!
//! Decoding multiplies few rows with every weight of the model. A general product of matrices lays each weight out anew for that; here
//! it lies ready since it was loaded, and the time is that of reading it from memory up to some eight rows, and of the arithmetic
//! beyond. A number of the result is summed in one order whatever else is computed with it, so that a row has the same result alone
//! and among others.

mod attention;
#[cfg(cpu_kernels)]
mod multiply;
mod product;
#[cfg(cpu_kernels)]
mod softmax;
#[cfg(cpu_kernels)]
mod threads;
#[cfg(cpu_kernels)]
mod tile;

pub(crate) use attention::{Pages, Seen, Span, attend, attend_pages, can_attend};
pub(crate) use product::{Product, Start};

use tch::{Device, Kind, Tensor};

use crate::error::Result;

/// Columns of a panel.
pub(crate) const PANEL: i64 = 16;

/// Whether there are kernels for this number format, device and machine.
pub(crate) fn is_available(kind: Kind, device: Device) -> bool {
    kind == Kind::Float && device == Device::Cpu && has_kernels()
}

/// Whether there are kernels for a tensor.
fn is_plain(tensor: &Tensor) -> bool {
    tensor.f_kind().is_ok_and(|kind| is_available(kind, tensor.device()))
}

#[cfg(cpu_kernels)]
fn has_kernels() -> bool {
    tile::is_available()
}

#[cfg(not(cpu_kernels))]
fn has_kernels() -> bool {
    false
}

/// Rows of a weight `[outputs, inputs]`, or of several `[n, outputs, inputs]`, in the order of [`place`].
pub(crate) fn blocks(rows: &Tensor) -> Result<Tensor> {
    Ok(rows.f_unflatten(-2, [-1, PANEL])?)
}

/// Where the blocks of outputs from `offset` on lie in panels `[panels, inputs, PANEL]`, or in several.
pub(crate) fn place(panels: &Tensor, offset: i64, outputs: i64) -> Result<Tensor> {
    Ok(panels
        .f_transpose(-2, -1)?
        .f_narrow(-3, offset / PANEL, outputs / PANEL)?)
}

/// Rows of a packed weight as a checkpoint has them, `[n, inputs]`.
pub(crate) fn rows_of(panels: &Tensor, rows: &Tensor) -> Result<Tensor> {
    let panel = rows.f_divide_scalar_mode(PANEL, "floor")?;
    let column = rows.f_remainder(PANEL)?;
    Ok(panels.f_index(&[Some(panel), None, Some(column)])?)
}

/// Computes products together: they are shared out to the threads of libtorch as one.
#[cfg(cpu_kernels)]
pub(crate) fn multiply(products: &[Product<'_>]) {
    multiply::multiply(products);
}

/// Without kernels there is no product.
#[cfg(not(cpu_kernels))]
pub(crate) fn multiply(_products: &[Product<'_>]) {}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use tch::{Device, Kind, Tensor};

    use super::{PANEL, Product, Start, blocks, is_available, multiply, place, rows_of};

    const CPU: (Kind, Device) = (Kind::Float, Device::Cpu);

    fn packed(weight: &Tensor) -> Tensor {
        let (outputs, inputs) = weight.size2().unwrap();
        let panels = Tensor::zeros([outputs / PANEL, inputs, PANEL], CPU);
        place(&panels, 0, outputs).unwrap().copy_(&blocks(weight).unwrap());
        panels
    }

    fn largest_difference(one: &Tensor, other: &Tensor) -> f64 {
        (one - other).abs().max().double_value(&[])
    }

    #[test]
    fn products_are_those_of_libtorch() {
        if !is_available(Kind::Float, Device::Cpu) {
            return;
        }
        for (inputs, outputs) in [(1, 16), (7, 48), (576, 96), (2500, 32)] {
            let weight = Tensor::randn([outputs, inputs], CPU);
            let panels = packed(&weight);
            for count in [1, 2, 3, 4, 5, 6, 7, 12, 13, 16, 100, 301] {
                // Rows that are a part of wider ones, as projections side by side are.
                let wide = Tensor::randn([count, inputs + 3], CPU);
                let rows = wide.narrow(1, 2, inputs);
                let bias = Tensor::randn([outputs], CPU);
                let plain = rows.matmul(&weight.transpose(0, 1));
                let tolerance = 1e-4 * (inputs as f64).sqrt();

                let out = Tensor::full([count, outputs], f64::NAN, CPU);
                multiply(&[Product::new(&rows, &panels, &out, Start::Zero).unwrap()]);
                assert!(largest_difference(&out, &plain) < tolerance);
                multiply(&[Product::new(&rows, &panels, &out, Start::Bias(&bias)).unwrap()]);
                assert!(largest_difference(&out, &(&plain + &bias)) < tolerance);
                multiply(&[Product::new(&rows, &panels, &out, Start::Out).unwrap()]);
                assert!(largest_difference(&out, &(&plain * 2 + &bias)) < 2.0 * tolerance);
            }
        }
    }

    #[test]
    fn a_row_has_the_same_result_alone_and_among_others() {
        if !is_available(Kind::Float, Device::Cpu) {
            return;
        }
        let panels = packed(&Tensor::randn([64, 300], CPU));
        let rows = Tensor::randn([200, 300], CPU);
        let product = |rows: &Tensor| {
            let out = Tensor::zeros([rows.size()[0], 64], CPU);
            multiply(&[Product::new(rows, &panels, &out, Start::Zero).unwrap()]);
            out
        };
        let all = product(&rows);
        for row in [0, 5, 117, 199] {
            assert_eq!(product(&rows.narrow(0, row, 1)), all.narrow(0, row, 1));
        }
        assert_eq!(product(&rows.narrow(0, 3, 50)), all.narrow(0, 3, 50));
    }

    #[test]
    fn several_products_are_computed_together() {
        if !is_available(Kind::Float, Device::Cpu) {
            return;
        }
        let rows = Tensor::randn([40, 32], CPU);
        let weights: Vec<Tensor> = (1..=3).map(|index| Tensor::randn([16 * index, 32], CPU)).collect();
        let panels: Vec<Tensor> = weights.iter().map(packed).collect();
        let parts: Vec<(Tensor, Tensor)> = [(0, 1), (1, 9), (10, 30)]
            .iter()
            .zip(&weights)
            .map(|((start, len), weight)| {
                (
                    rows.narrow(0, *start, *len),
                    Tensor::zeros([*len, weight.size()[0]], CPU),
                )
            })
            .collect();
        let products: Vec<Product<'_>> = parts
            .iter()
            .zip(&panels)
            .map(|((rows, out), panels)| Product::new(rows, panels, out, Start::Zero).unwrap())
            .collect();
        multiply(&products);
        for ((rows, out), weight) in parts.iter().zip(&weights) {
            assert!(largest_difference(out, &rows.matmul(&weight.transpose(0, 1))) < 1e-3);
        }
    }

    #[test]
    fn rows_of_a_weight_are_found_again() {
        let weight = Tensor::randn([48, 5], CPU);
        let picked = Tensor::from_slice(&[47_i64, 0, 16, 16, 31]);
        assert_eq!(
            rows_of(&packed(&weight), &picked).unwrap(),
            weight.index_select(0, &picked)
        );
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let (panels, out) = (Tensor::zeros([2, 8, PANEL], CPU), Tensor::zeros([3, 32], CPU));
        let new = |rows: &Tensor, out: &Tensor| Product::new(rows, &panels, out, Start::Zero).map(|_| ());
        let rows = Tensor::zeros([3, 8], CPU);
        assert!(new(&rows, &out).is_ok());
        assert!(new(&rows.narrow(1, 0, 7), &out).is_err());
        assert!(new(&rows.to_kind(Kind::Double), &out).is_err());
        assert!(new(&rows.narrow(0, 0, 2), &out).is_err());
        assert!(new(&rows, &out.narrow(1, 0, 16)).is_err());
        assert!(new(&rows, &Tensor::zeros([32, 3], CPU).transpose(0, 1)).is_err());
        let bias = Tensor::zeros([31], CPU);
        assert!(Product::new(&rows, &panels, &out, Start::Bias(&bias)).is_err());
    }
}
