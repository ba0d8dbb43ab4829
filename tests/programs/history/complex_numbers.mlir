func.func @main(%re: tensor<4xf32>, %im: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.complex %re, %im : tensor<4xcomplex<f32>>
  %1 = "stablehlo.fft"(%0) {fft_type = #stablehlo<fft_type FFT>, fft_length = array<i64: 4>}
    : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
  %2 = stablehlo.multiply %1, %0 : tensor<4xcomplex<f32>>
  %3 = stablehlo.real %2 : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
  %4 = stablehlo.imag %2 : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
  return %3, %4 : tensor<4xf32>, tensor<4xf32>
}
