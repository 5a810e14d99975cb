// Package book keeps what organizations choose of their events for longer than the hub logs do: the
// stream BOOK, and what writes it.
//
// # Stream
//
// An entry is a domain.BookEntry under `book.entry.<org>.<hub>.<kind>`; the hub of a gap is `-`. A
// cut, a domain.BookCut under `book.cut.<org>`, says that entries before it are deleted: readers that
// have them, such as the read models, delete them too. After a cut its entries are purged.
//
// # Promises
//
//   - An entry is stored once, in the order of the organization's feed. It has the position of its
//     event, and is appended on condition of the book's last entry. So a process that was killed, or
//     that has lost its lease, neither loses nor repeats one.
//   - If events expired before they were read, the book has an entry of the kind gap in their place,
//     whose At is the time up to which it is complete.
//   - An entry is deleted once the book does not keep it any more: within SweepEvery when its time is
//     over, the book has more than MaxEntries, or its hub was released, and at once when settings
//     change.
//   - One replica writes the books of a part: the holder of a lease (Keeper.Serve). Books wait for no
//     other one, but for each other's appends.
//
// # Goroutines
//
// Serve owns a goroutine for each book of its part, and waits for them. Keeper.Follow, which the
// caller owns, knows the books.
package book
