//! Pointers to implementations of the traits that hosts implement.

/// Implements a trait for `&T`, `Box<T>` and `Arc<T>` where `T` implements it: each method calls
/// that of `T`. The async methods come first.
macro_rules! for_pointers {
    ($trait:ident $methods:tt) => {
        for_pointers!(&T, $trait $methods);
        for_pointers!(Box<T>, $trait $methods);
        for_pointers!(std::sync::Arc<T>, $trait $methods);
    };
    ($pointer:ty, $trait:ident {
        $(async fn $name:ident(&self $(, $argument:ident: $type:ty)*) -> $output:ty;)*
        $(fn $plain:ident(&self $(, $given:ident: $kind:ty)*) -> $result:ty;)*
    }) => {
        #[async_trait]
        impl<T: $trait + ?Sized> $trait for $pointer {
            $(async fn $name(&self $(, $argument: $type)*) -> $output {
                (**self).$name($($argument),*).await
            })*
            $(fn $plain(&self $(, $given: $kind)*) -> $result {
                (**self).$plain($($given),*)
            })*
        }
    };
}
pub(crate) use for_pointers;
