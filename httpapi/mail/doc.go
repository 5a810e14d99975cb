// Package mail composes and sends the service's mails. A mail takes two steps. SendInvitation,
// SendSignIn and SendAlarm store its data in a durable queue. The queue then calls Deliver, again
// after each failure, which composes the mail and passes it to a Transport: a mail server (SMTP),
// or a folder of .eml files for an installation without one.
//
// # Promises
//
//   - A mail has a text and an HTML part with the same content, in UTF-8. The name of an
//     organization is only ever data: it cannot add a header, a recipient, markup or a line, and
//     characters that change the direction of the text around it are removed.
//   - Every try to deliver a mail has the same Message-ID and Date, and in a folder the same file
//     name. A mail is sent twice if the process is killed between the server's answer and the
//     record of it; the recipient can see that both are one.
//   - ErrRejected is about one mail, ErrUnreachable about the server or the connection. After any
//     other error the same mail may be delivered later.
//   - A mail is not sent (ErrObsolete) when its invitation is over at that time, when its recipient
//     may not sign in, or when the recipient of a mail about alarms has left the organization or
//     gets no such mails any more.
//   - A mail about alarms has a link that ends these mails without signing in, and the headers of
//     RFC 8058, by which mail programs do so with one click. The link is made when the mail goes out,
//     so the queue does not have it.
//   - A mail goes to the address stored with the recipient's account, not to the one that was
//     typed (Config.InvitationRecipient, Config.SignInRecipient). So all spellings of an account's
//     address go to one mailbox.
//   - Passwords and links are in no log line and in no error.
//
// The package starts no goroutine that outlives a call. Mailer and the transports are safe for
// concurrent use.
package mail
