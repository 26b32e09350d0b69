//! Lists that are empty nearly always: a word each.

use std::fmt;
use std::ops::{Deref, DerefMut};

/// A list that takes no more than a pointer while it is empty.
#[derive(Clone, PartialEq, Eq, Hash)]
#[expect(clippy::box_collection, reason = "a vector has three words")]
pub struct Few<T>(Option<Box<Vec<T>>>);

impl<T> Few<T> {
    /// An empty list.
    pub const fn new() -> Self {
        Self(None)
    }

    /// Appends an item.
    pub fn push(&mut self, item: T) {
        self.0.get_or_insert_default().push(item);
    }

    /// Removes all items.
    pub fn clear(&mut self) {
        self.0 = None;
    }

    /// The items.
    pub fn as_slice(&self) -> &[T] {
        self
    }

    fn into_vec(self) -> Vec<T> {
        self.0.map_or_else(Vec::new, |list| *list)
    }
}

impl<T> Default for Few<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Deref for Few<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.0.as_ref().map_or(&[], |list| list)
    }
}

impl<T> DerefMut for Few<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.0.as_mut().map_or(&mut [], |list| list)
    }
}

impl<T> From<Vec<T>> for Few<T> {
    fn from(list: Vec<T>) -> Self {
        Self((!list.is_empty()).then(|| Box::new(list)))
    }
}

impl<T: Clone> From<&[T]> for Few<T> {
    fn from(list: &[T]) -> Self {
        list.to_vec().into()
    }
}

impl<T> FromIterator<T> for Few<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        items.into_iter().collect::<Vec<T>>().into()
    }
}

impl<T> Extend<T> for Few<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        items.into_iter().for_each(|item| self.push(item));
    }
}

impl<T> IntoIterator for Few<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.into_vec().into_iter()
    }
}

impl<'a, T> IntoIterator for &'a Few<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, T> IntoIterator for &'a mut Few<T> {
    type Item = &'a mut T;
    type IntoIter = std::slice::IterMut<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

impl<T: fmt::Debug> fmt::Debug for Few<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_equal_by_their_items() {
        let mut list = Few::new();
        assert_eq!((size_of_val(&list), list.len()), (size_of::<usize>(), 0));
        assert_eq!(list, Few::from(Vec::new()));
        list.push(1);
        list.push(2);
        list[1] = 3;
        assert_eq!(list, Few::from([1, 3].as_slice()));
        assert_eq!(list.iter().sum::<i32>(), 4);
        assert_eq!(list.into_iter().collect::<Vec<i32>>(), [1, 3]);
    }
}
