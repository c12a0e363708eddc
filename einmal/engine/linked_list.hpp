#pragma once

#include <cstddef>

namespace einmal::detail {

/// Membership in at most one List of that Tag; leaves it when destroyed.
template <class Tag>
class Hook {
 public:
  Hook() = default;
  Hook(const Hook&) = delete;
  Hook& operator=(const Hook&) = delete;
  ~Hook() { leave(); }

  bool in_list() const { return next_ != nullptr; }
  void leave() {
    if (!next_) return;
    prev_->next_ = next_;
    next_->prev_ = prev_;
    next_ = prev_ = nullptr;
  }

 private:
  template <class T, class U>
  friend class List;
  Hook* next_ = nullptr;
  Hook* prev_ = nullptr;
};

/// A list of objects that derive from Hook<Tag>; owns nothing, allocates nothing.
template <class T, class Tag>
class List {
 public:
  List() { root_.next_ = root_.prev_ = &root_; }
  ~List() {
    while (front()) front_hook()->leave();
    root_.next_ = root_.prev_ = nullptr;
  }
  List(const List&) = delete;
  List& operator=(const List&) = delete;

  bool empty() const { return root_.next_ == &root_; }
  T* front() { return empty() ? nullptr : static_cast<T*>(front_hook()); }
  /// The one after `item`; null at the end.
  T* after(T& item) {
    Hook<Tag>* next = static_cast<Hook<Tag>&>(item).next_;
    return next == &root_ ? nullptr : static_cast<T*>(next);
  }
  /// Moves it here from the list it is in, if any.
  void push_back(T& item) {
    Hook<Tag>& hook = item;
    hook.leave();
    hook.prev_ = root_.prev_;
    hook.next_ = &root_;
    root_.prev_->next_ = &hook;
    root_.prev_ = &hook;
  }
  static void remove(T& item) { static_cast<Hook<Tag>&>(item).leave(); }
  /// Takes all of `other`, in its order, behind what is here.
  void splice(List& other) {
    while (T* item = other.front()) push_back(*item);
  }

 private:
  Hook<Tag>* front_hook() { return root_.next_; }
  Hook<Tag> root_;
};

}  // namespace einmal::detail
