// Package enrolment gets a hub its certificate and keeps it.
//
//   - Request makes a new key and has the cloud issue a certificate for it. A rejection by the
//     cloud is an *Error, with the wait that the cloud asked for.
//   - An Identity is the key, the certificate, the CA and the broker's address. It is stored as one
//     file that is replaced as a whole, so a key never stands beside the certificate of another
//     key.
//   - Schedule decides when a hub that the broker rejects enrols again.
package enrolment
