// A queue whose elements are used again, with the memory that they have: where
// as many come as go, nothing is allocated.
//
//   struct Parcel {
//     std::vector<std::byte> bytes;
//     std::shared_ptr<Owner> owner;
//     void Recycle() { owner.reset(); }
//   };
//   RecycledQueue<Parcel> queue;
//   queue.Push().bytes.assign(...);
//   Use(queue.front());
//   queue.Pop();
//
// Elements stay where they are until they are popped.
// Thread rule: one thread at a time.
#ifndef VERBENA_RDMA_TRANSPORT_RECYCLED_QUEUE_H_
#define VERBENA_RDMA_TRANSPORT_RECYCLED_QUEUE_H_

#include <cstddef>
#include <iterator>
#include <list>

namespace rdma {

// Element::Recycle gives back what others may be waiting for.
template <typename Element>
class RecycledQueue {
 public:
  // Kept for the next ones, at most.
  static constexpr size_t kMostSpares = 64;

  bool empty() const { return elements_.empty(); }
  size_t size() const { return elements_.size(); }
  // REQUIRES: not empty.
  Element& front() { return elements_.front(); }

  // A new one at the end: as made by default, or as Recycle left an older one.
  Element& Push() {
    if (spares_.empty()) return elements_.emplace_back();
    elements_.splice(elements_.end(), spares_, spares_.begin());
    return elements_.back();
  }
  // What an element gives back may call what uses the queue: it is out of the
  // queue by then. REQUIRES: not empty.
  void Pop() {
    std::list<Element> popped;
    popped.splice(popped.begin(), elements_, elements_.begin());
    Recycle(popped);
  }
  template <typename Predicate>
  void RemoveIf(Predicate predicate) {
    std::list<Element> removed;
    for (auto at = elements_.begin(); at != elements_.end();) {
      const auto next = std::next(at);
      if (predicate(*at)) removed.splice(removed.end(), elements_, at);
      at = next;
    }
    while (!removed.empty()) {
      std::list<Element> first;
      first.splice(first.begin(), removed, removed.begin());
      Recycle(first);
    }
  }
  void Clear() {
    std::list<Element> elements;
    elements.swap(elements_);
    FreeSpares();
  }
  bool has_spares() const { return !spares_.empty(); }
  void FreeSpares() { spares_.clear(); }

 private:
  void Recycle(std::list<Element>& one) {
    one.front().Recycle();
    // The newest first: its memory is the likeliest to be in a cache.
    if (spares_.size() < kMostSpares) spares_.splice(spares_.begin(), one);
  }

  std::list<Element> elements_;
  std::list<Element> spares_;
};

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_RECYCLED_QUEUE_H_
