//! Shared vectors.
//!
//! A request, a snapshot and a fork share the messages of a thread through a reference count.
//! Appending copies nothing unless another handle shares the vector.

use std::{ops::Deref, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A vector that is cheap to clone and copied on write. It dereferences to a slice.
///
/// ```
/// use threadfold::message::{Message, SharedVec};
///
/// let mut thread = SharedVec::from(vec![Message::user("hello")]);
/// let snapshot = thread.clone();
/// thread.make_mut().push(Message::assistant("hi"));
/// assert_eq!((snapshot.len(), thread.len()), (1, 2));
/// ```
#[derive(Debug, PartialEq, Eq)]
pub struct SharedVec<T>(Arc<Vec<T>>);

impl<T> SharedVec<T> {
    /// `true` if both handles share one vector.
    #[must_use]
    pub fn ptr_eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T: Clone> SharedVec<T> {
    /// Returns the vector for modification. It is copied first if another handle shares it.
    ///
    /// ```
    /// use threadfold::message::SharedVec;
    ///
    /// let mut numbers = SharedVec::from(vec![1, 2]);
    /// let before = numbers.clone();
    /// numbers.make_mut().push(3);
    /// assert_eq!((before[..].to_vec(), numbers[..].to_vec()), (vec![1, 2], vec![1, 2, 3]));
    /// ```
    pub fn make_mut(&mut self) -> &mut Vec<T> {
        if Arc::get_mut(&mut self.0).is_none() {
            // A copy is usually made to append, so spare capacity avoids a reallocation.
            let mut own = Vec::with_capacity(self.len() + self.len() / 8 + 4);
            own.extend_from_slice(self);
            self.0 = Arc::new(own);
        }
        Arc::make_mut(&mut self.0)
    }
}

impl<T> Clone for SharedVec<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for SharedVec<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T> Deref for SharedVec<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> From<Vec<T>> for SharedVec<T> {
    fn from(items: Vec<T>) -> Self {
        Self(Arc::new(items))
    }
}

impl<T: Clone> From<SharedVec<T>> for Vec<T> {
    fn from(items: SharedVec<T>) -> Self {
        Arc::unwrap_or_clone(items.0)
    }
}

impl<T> FromIterator<T> for SharedVec<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self::from(Vec::from_iter(items))
    }
}

impl<'a, T> IntoIterator for &'a SharedVec<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T: Serialize> Serialize for SharedVec<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.as_slice().serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for SharedVec<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Self::from)
    }
}
