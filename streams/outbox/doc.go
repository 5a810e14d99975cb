// Package outbox is the durable queue of what goes out of the service: mails. It keeps them in the
// stream MAIL of the account CLOUD, and hands each to a function that delivers it until that works,
// is refused, or the mail's time is over. It does not know what it keeps.
//
// # Promises
//
//   - What Put returned nil for is stored: it outlives restarts, a kill -9, and with the broker's
//     `sync always` a power cut. The same id put twice within two minutes, as by a caller that did
//     not get an answer, is one mail.
//   - Each mail is handed to one replica at a time, and is gone from the queue once it was
//     delivered, with the broker's word for it. It is delivered twice only if the process (or its
//     way to the broker) dies between a delivery and that word.
//   - A failure of one mail delays that mail: 5 s, 10 s, 20 s, … up to 15 minutes, each cut by a
//     random part. ErrUnreachable delays all of them, by a pause that grows from 1 s to a minute,
//     since none would get through.
//   - A mail ends undelivered in three cases, each with a log line that has its id: it was refused
//     (ErrRejected), or it was still undelivered at the time that Put was given, both at level
//     error, or it has become pointless meanwhile (ErrObsolete), at level info. Nothing is dropped
//     otherwise.
//   - The queue is bounded: Capacity ordinary mails of at most MaxContent bytes, of which one
//     sender has Config.PerSender, and UrgentCapacity urgent ones. A full one refuses new mails
//     (ErrFull, ErrSenderFull) and keeps the old. The count of ordinary mails is read before one is
//     stored: mails that are put at the same moment may exceed it by their number, at the most by
//     the capacity of the urgent ones.
//   - Of mails to one recipient, by the same sender or urgent, the newest waits: it takes the place
//     of the one before, unless that is just being delivered.
//   - Urgent mails have deliverers of their own and wait for no ordinary one. Ordinary mails are
//     delivered one of each sender after the other: a sender with many delays the others by one at
//     a time, as long as fewer than eight senders have as many as a process holds of one.
//   - A mail that a killed process had in hand, or that waited for its next try when the broker
//     ended, is tried again within ten seconds of the restart.
//   - A mail may hold a secret. It is in the broker's files only while it waits: what is done is
//     overwritten there, not just marked.
//   - There is no other order among mails.
//
// Run owns every goroutine. When its context ends, deliveries under way get Grace to come to their
// end, so that an orderly stop repeats none; what is cut off then is delivered again by the next
// Run.
package outbox
