/* SPDX-License-Identifier: Apache-2.0
   The one function of bcryptprimitives.dll that Go needs. Wine has this library since 9.0, Debian 12 has Wine 8.0. */
#include <windows.h>
#include <ntsecapi.h>

__declspec(dllexport) BOOL ProcessPrng(PBYTE data, SIZE_T length) { return RtlGenRandom(data, (ULONG)length); }
