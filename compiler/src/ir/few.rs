//! Lists that are empty nearly always: a word each.

use smallvec::SmallVec;
use std::fmt;
use std::ops::{Deref, DerefMut};

/// A list that takes no more than a pointer while it is empty, and one piece of memory while it has two items at most.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Few<T>(Option<Box<SmallVec<[T; 2]>>>);

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
}

impl<T> Default for Few<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Deref for Few<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.0.as_ref().map_or(&[], |list| list.as_slice())
    }
}

impl<T> DerefMut for Few<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.0.as_mut().map_or(&mut [], |list| list.as_mut_slice())
    }
}

impl<T> From<Vec<T>> for Few<T> {
    fn from(list: Vec<T>) -> Self {
        list.into_iter().collect()
    }
}

impl<T: Clone> From<&[T]> for Few<T> {
    fn from(list: &[T]) -> Self {
        list.iter().cloned().collect()
    }
}

impl<T> FromIterator<T> for Few<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let list: SmallVec<[T; 2]> = items.into_iter().collect();
        Self((!list.is_empty()).then(|| Box::new(list)))
    }
}

impl<T> Extend<T> for Few<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        items.into_iter().for_each(|item| self.push(item));
    }
}

impl<T> IntoIterator for Few<T> {
    type Item = T;
    type IntoIter = smallvec::IntoIter<[T; 2]>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.map_or_else(SmallVec::new, |list| *list).into_iter()
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
