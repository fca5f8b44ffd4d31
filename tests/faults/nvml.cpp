// A fake NVML library with one GPU.

#include <cstring>

extern "C" {

int nvmlInit_v2() {
  return 0;
}
int nvmlShutdown() {
  return 0;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, void** device) {
  static int gpu = 0;
  *device = &gpu;
  return std::strcmp(bus_id, "00000000:01:00.0") == 0 ? 0 : 6;  // NVML_ERROR_NOT_FOUND
}
int nvmlSystemGetDriverVersion(char* text, unsigned int length) {
  std::strncpy(text, "580.12", length);
  return 0;
}
int nvmlDeviceGetClockInfo(void* /*device*/, int kind, unsigned int* mhz) {
  *mhz = kind == 1 ? 1200 : 0;
  return 0;
}
int nvmlDeviceGetMaxClockInfo(void* /*device*/, int /*kind*/, unsigned int* /*mhz*/) {
  return 3;  // NVML_ERROR_NOT_SUPPORTED
}
// Adds half a joule per call.
int nvmlDeviceGetTotalEnergyConsumption(void* /*device*/, unsigned long long* millijoules) {
  static unsigned long long count = 0;
  *millijoules = count += 500;
  return 0;
}

}  // extern "C"
