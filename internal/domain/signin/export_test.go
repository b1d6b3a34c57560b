// SPDX-License-Identifier: Apache-2.0

package signin

// MostAsked is mostAsked for tests.
const MostAsked = mostAsked
