# SPDX-License-Identifier: Apache-2.0
"""Operators that compute element by element, where the sizes of dimensions may be 1; AFFINE: which add and scale."""
PASSED = ("DebugIdentity", "EnsureShape", "Identity", "IdentityN", "PlaceholderWithDefault", "PreventGradient", "Snapshot", "StopGradient")
AFFINE = ("Add", "AddN", "AddV2", "Cast", "Mul", "Neg", "RealDiv", "Sub")
ELEMENTWISE = frozenset(AFFINE) | frozenset("""
    Abs AccumulateNV2 Acos Acosh Angle ApproximateEqual Asin Asinh Atan Atan2 Atanh BesselI0 BesselI0e BesselI1 BesselI1e Betainc BitwiseAnd
    BitwiseOr BitwiseXor Bucketize Ceil CheckNumerics ClipByValue Complex ComplexAbs Conj Cos Cosh Digamma Div DivNoNan Elu EluGrad Equal Erf
    Erfc Erfcinv Erfinv Exp Expm1 FakeQuantWithMinMaxArgs FakeQuantWithMinMaxVars Floor FloorDiv FloorMod Greater GreaterEqual Igamma Igammac
    Imag Inv InvGrad Invert IsFinite IsInf IsNan LeakyRelu LeakyReluGrad LeftShift Less LessEqual Lgamma Log Log1p LogicalAnd LogicalNot
    LogicalOr LookupTableFindV2 Maximum Minimum Mod MulNoNan Ndtri NextAfter NotEqual OnesLike Polygamma Pow Real Reciprocal ReciprocalGrad
    Relu Relu6 Relu6Grad ReluGrad RightShift Rint Round Rsqrt RsqrtGrad SelectV2 Selu SeluGrad Sigmoid SigmoidGrad Sign Sin Sinh
    Softplus SoftplusGrad Softsign SoftsignGrad Sqrt SqrtGrad Square SquaredDifference StringLower StringToHashBucket StringToHashBucketFast
    StringToNumber Tan Tanh TanhGrad TruncateDiv TruncateMod Xdivy Xlog1py Xlogy ZerosLike Zeta""".split())
