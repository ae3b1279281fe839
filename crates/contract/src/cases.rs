//! How a case becomes two tests.

/// Makes two tests of each async function it names: one on the embedded server, one on the real
/// one. A function that is not named is dead code, which the compiler reports.
#[macro_export]
macro_rules! cases {
    ($($name:ident),* $(,)?) => {
        mod embedded {
            $(
                #[test]
                fn $name() {
                    $crate::run_on_embedded(stringify!($name), super::$name);
                }
            )*
        }
        mod real {
            $(
                #[test]
                fn $name() {
                    $crate::run_on_real(stringify!($name), super::$name);
                }
            )*
        }
    };
}
